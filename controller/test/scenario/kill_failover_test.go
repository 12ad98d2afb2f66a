// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

var procedures = map[string]procedure{
	"promotion": {
		before: func(w *world) { w.replica("Snapshot", corev1.PersistentVolumeFilesystem) },
		ask:    func(w *world) { w.promote(v1alpha1.PromoteSpec{PVCName: "db"}) },
		end: func(w *world) {
			w.promotedReason(v1alpha1.ReasonPromoted)
			w.bound("db", corev1.PersistentVolumeReclaimDelete)
			if !same(w.path(w.namespace, "data"), w.path(w.namespace, "db")) {
				w.Error("the promoted volume differs from the source")
			}
			w.eventually(20*time.Second, "an empty vault", func() bool { return len(w.inVault()) == 0 })
			if epoch := w.destination("p").Status.Lineage.Epoch; !strings.HasPrefix(epoch, "1-") {
				w.Errorf("epoch %s", epoch)
			}
		},
	},
	"restored promotion": {
		before: func(w *world) {
			w.cutTransfer("Snapshot")
			edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Paused = true })
		},
		ask: func(w *world) {
			w.promote(v1alpha1.PromoteSpec{PVCName: "db", Image: w.destination("p").Status.LatestImage.Name})
		},
		end: func(w *world) {
			w.promotedReason(v1alpha1.ReasonPromoted)
			w.bound("db", corev1.PersistentVolumeReclaimDelete)
			w.eventually(20*time.Second, "an empty vault", func() bool { return len(w.inVault()) == 0 })
		},
	},
	"promotion in place of a claim": {
		before: func(w *world) {
			w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
			w.write(filepath.Join(w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem), "precious"), 1000)
		},
		ask: func(w *world) {
			w.promote(v1alpha1.PromoteSpec{PVCName: "db", ConflictPolicy: v1alpha1.ConflictReplace})
		},
		end: func(w *world) {
			w.promotedReason(v1alpha1.ReasonPromoted)
			promoted := w.bound("db", corev1.PersistentVolumeReclaimDelete)
			if !same(w.path(w.namespace, "data"), w.path(w.namespace, "db")) {
				w.Error("the promoted volume differs from the source")
			}
			w.eventually(20*time.Second, "an empty vault", func() bool { return len(w.inVault()) == 0 })
			old := slices.DeleteFunc(w.volumesOf("db"), func(name string) bool { return name == promoted.Name })
			if len(old) != 1 {
				w.Fatalf("besides the promoted volume there are %v", old)
			}
			w.kept(old[0], "precious")
			w.eventually(10*time.Second, "an event that names the volume", func() bool { return w.noted("PVCConflict", old[0]) })
		},
	},
	"demotion": {
		before: func(w *world) {
			w.replica("Direct", corev1.PersistentVolumeFilesystem)
			w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
			w.promotedReason(v1alpha1.ReasonPromoted)
			w.write(filepath.Join(w.path(w.namespace, "db"), "of-the-application"), 1000)
		},
		ask: func(w *world) { w.demote() },
		end: func(w *world) {
			w.listensOn(w.pvc("db").Spec.VolumeName)
			if w.pvc("db").Status.Phase != corev1.ClaimLost || !same(w.staging("p"), w.volumeOf("db")) {
				w.Errorf("claim db is %s", w.pvc("db").Status.Phase)
			}
		},
	},
	"adoption": {
		before: func(w *world) { w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem) },
		ask:    func(w *world) { w.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}}) },
		end:    func(w *world) { w.listensOn(w.pvc("db").Spec.VolumeName) },
	},
	"final sync": {
		before: func(w *world) { w.relocatable() },
		ask:    func(w *world) { w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", AfterSync: v1alpha1.AfterSyncRelease}) },
		end: func(w *world) {
			w.finalSynced(v1alpha1.ReasonCompleted)
			w.eventually(20*time.Second, "the final sync to arrive", func() bool {
				received := w.destination("p").Status.LastReceived
				return received.FinalSyncID == "r1" && received.Seq == 2
			})
			w.eventually(20*time.Second, "the claim to be bound again", func() bool {
				return w.pvc("data").Status.Phase == corev1.ClaimBound && w.vaultObjects() == 0
			})
			w.bound("data", corev1.PersistentVolumeReclaimRetain)
		},
	},
	"final sync without claim": {
		before: func(w *world) {
			w.relocatable()
			w.deleteClaim("data")
		},
		ask: func(w *world) {
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonCompleted)
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", AfterSync: v1alpha1.AfterSyncRelease})
		},
		end: func(w *world) {
			pvName := w.source("p").Status.SourceVolume.PVName
			w.eventually(30*time.Second, "the release", func() bool {
				return w.vaultObjects() == 0 && w.source("p").Status.Fence == nil && w.pv(pvName).Spec.ClaimRef.Namespace == w.namespace
			})
			w.finalSynced(v1alpha1.ReasonCompleted)
			w.eventually(20*time.Second, "the final sync to arrive", func() bool {
				received := w.destination("p").Status.LastReceived
				return received.FinalSyncID == "r1" && received.Seq == 2
			})
			if !same(w.kept(pvName, "last-write"), w.staging("p")) {
				w.Error("the peer does not have the last write")
			}
			w.boundByName("data", pvName)
		},
	},
	"adoption of a held volume": {
		before: func(w *world) {
			w.relocatable()
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonCompleted)
		},
		ask: func(w *world) {
			w.create(&v1alpha1.Destination{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "home"},
				Spec:       v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}},
			})
		},
		end: func(w *world) {
			pvName := w.pvc("data").Spec.VolumeName
			w.eventually(60*time.Second, "the adoption", func() bool {
				d := w.destination("home").Status
				return d.Phase == v1alpha1.DestinationListening && d.Fence == nil && d.Staging.PVName == pvName
			})
		},
	},
	"calling off": {
		before: func(w *world) {
			w.relocatable()
			w.inject(slowly(20 * time.Second))
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonSyncing)
			w.eventually(30*time.Second, "the mover", func() bool { return w.vaultObjects() == 3 })
		},
		ask: func(w *world) { w.callOff() },
		end: func(w *world) {
			w.finalSynced(v1alpha1.ReasonNotRequested)
			w.eventually(20*time.Second, "the claim to be bound again", func() bool {
				return w.pvc("data").Status.Phase == corev1.ClaimBound && w.vaultObjects() == 0
			})
			w.bound("data", corev1.PersistentVolumeReclaimRetain)
		},
	},
	"fence roll-back": {
		before: func(w *world) { w.relocatable() },
		ask: func(w *world) {
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.eventually(30*time.Second, "the fence", func() bool {
				return w.pv(w.pvc("data").Spec.VolumeName).Spec.ClaimRef.Namespace == vault
			})
			w.pod("late", "data")
		},
		end: func(w *world) {
			w.finalSynced(v1alpha1.ReasonInUse)
			w.eventually(20*time.Second, "the claim to be bound", func() bool {
				return w.pvc("data").Status.Phase == corev1.ClaimBound && w.finalClaim() == nil
			})
			w.bound("data", corev1.PersistentVolumeReclaimRetain)
		},
	},
}

// listensOn waits until Destination p listens on a volume, which is in the vault with policy Retain.
func (w *world) listensOn(pvName string) {
	w.Helper()
	w.eventually(60*time.Second, "the listener", func() bool {
		d := w.destination("p").Status
		return d.Phase == v1alpha1.DestinationListening && d.Promotion == nil && d.Fence == nil && d.Staging.PVName == pvName
	})
	if pv := w.pv(pvName); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Spec.ClaimRef.Namespace != vault {
		w.Errorf("volume %s has policy %s and refers to %+v", pvName, pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef)
	}
}

// volumeOf is the directory of a claim's volume, whether they are bound or not.
func (w *world) volumeOf(claim string) string {
	w.Helper()
	path, err := w.site.node.VolumePath(w.ctx, w.pvc(claim).Spec.VolumeName)
	w.must(err)
	return path
}

// Each procedure, with the controller killed after its k-th write and started again, for each k: all end in the same state.
func TestFailoverKilledAfterEachWrite(t *testing.T) { killEach(t, procedures) }

func (w *world) removePods() {
	w.Helper()
	w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace), client.GracePeriodSeconds(0)))
}

// watchVolumes looks at each state that a volume of this world's user takes, until it is told to stop.
func (w *world) watchVolumes() (done func()) {
	w.Helper()
	set, err := kubernetes.NewForConfig(w.site.plane.Admin())
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	watch, err := set.CoreV1().PersistentVolumes().Watch(ctx, metav1.ListOptions{})
	w.must(err)
	var ended sync.WaitGroup
	ours := map[types.UID]bool{}             // volumes that a claim of the namespace has or had
	copied := names.Source(w.namespace, "p") // the claim of what Source p sends, which is not the user's
	ended.Go(func() {
		for event := range watch.ResultChan() {
			pv, is := event.Object.(*corev1.PersistentVolume)
			if !is || pv.Spec.ClaimRef == nil {
				continue
			}
			ours[pv.UID] = ours[pv.UID] || pv.Spec.ClaimRef.Namespace == w.namespace && pv.Spec.ClaimRef.Name != copied
			if !ours[pv.UID] {
				continue
			}
			claim := &corev1.PersistentVolumeClaim{}
			err := w.client.Get(ctx, client.ObjectKey{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}, claim)
			if ctx.Err() != nil {
				return
			}
			claimed := err == nil && claim.UID == pv.Spec.ClaimRef.UID
			if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !claimed {
				w.Errorf("volume %s has policy Delete without a claim: %+v", pv.Name, pv.Spec.ClaimRef)
			}
			if err == nil && claim.Namespace == w.namespace && claim.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
				w.unmarked(claim)
			}
		}
	})
	return func() {
		cancel()
		watch.Stop()
		ended.Wait()
	}
}
