// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// deletions of a resource that has a volume which is, or is to be, a user's.
var deletions = map[string]procedure{
	"Source that holds": {
		before: func(w *world) { w.hold() },
		ask:    func(w *world) { w.must(w.client.Delete(w.ctx, w.source("p"))) },
		end: func(w *world) {
			w.gone(&v1alpha1.Source{})
			w.givenBack("data", "last-write")
		},
	},
	"Source that holds and claim deleted before": {
		before: func(w *world) {
			w.relocatable()
			w.deleteClaim("data")
			w.held()
		},
		ask: func(w *world) { w.must(w.client.Delete(w.ctx, w.source("p"))) },
		end: keptByName,
	},
	"Source that holds and claim deleted meanwhile": {
		before: func(w *world) {
			w.hold()
			w.deleteClaim("data")
		},
		ask: func(w *world) { w.must(w.client.Delete(w.ctx, w.source("p"))) },
		end: keptByName,
	},
	"Source that holds and claim made anew": {
		before: func(w *world) {
			w.hold()
			w.deleteClaim("data")
			w.pendingClaim("data")
		},
		ask: func(w *world) { w.must(w.client.Delete(w.ctx, w.source("p"))) },
		end: func(w *world) {
			w.gone(&v1alpha1.Source{})
			w.givenBack("data", "last-write")
		},
	},
	"Destination that promotes": {
		before: func(w *world) { w.replica("Snapshot", corev1.PersistentVolumeFilesystem) },
		ask: func(w *world) {
			w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
			w.must(w.client.Delete(w.ctx, w.destination("p")))
		},
		// It has nothing yet that would be the user's.
		end: func(w *world) {
			w.gone(&v1alpha1.Destination{})
			w.eventually(20*time.Second, "the volume's end", func() bool { return len(w.volumesOfDestination()) == 0 })
			w.noClaim("db")
		},
	},
	"Destination that has handed over": {
		before: func(w *world) {
			w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
			w.deleteAfter("PATCH /api/v1/persistentvolumes/", func() { w.promote(v1alpha1.PromoteSpec{PVCName: "db"}) })
		},
		ask: func(*world) {},
		end: func(w *world) {
			w.gone(&v1alpha1.Destination{})
			w.handedOver()
		},
	},
	"Destination that has made the claim": {
		before: func(w *world) {
			w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
			w.deleteAfter("POST /api/v1/namespaces/"+w.namespace+"/persistentvolumeclaims", func() { w.promote(v1alpha1.PromoteSpec{PVCName: "db"}) })
		},
		ask: func(*world) {},
		end: func(w *world) {
			w.gone(&v1alpha1.Destination{})
			w.givenBack("db", "dir")
		},
	},
	"Destination that demotes": {
		before: func(w *world) {
			w.promotedAndUsed()
			w.deleteAfter("PATCH /api/v1/persistentvolumes/", w.demote)
		},
		ask: func(*world) {},
		end: func(w *world) {
			w.gone(&v1alpha1.Destination{})
			w.givenBack("db", "of-the-application")
		},
	},
}

// A Source or Destination is deleted, and the controller killed after each write of that.
func TestDeletionKilledAfterEachWrite(t *testing.T) { killEach(t, deletions) }

func (w *world) hold() {
	w.Helper()
	w.relocatable()
	w.held()
}

// held has a final sync done, and waits until both ends have done with it.
func (w *world) held() {
	w.Helper()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.eventually(30*time.Second, "rest", func() bool {
		s, d := w.source("p").Status, w.destination("p").Status
		return s.ActiveSync == nil && d.LastReceived.FinalSyncID == "r1" && d.PendingImage == nil && len(d.Images) > 0 &&
			d.Images[0].Seq == 2 && d.Phase == v1alpha1.DestinationListening
	})
}

func (w *world) promotedAndUsed() {
	w.Helper()
	procedures["demotion"].before(w)
}

// deleteAfter kills the controller right after the first write of a kind, and deletes Destination p before there is another one.
func (w *world) deleteAfter(write string, ask func()) {
	w.Helper()
	w.stop()
	stop, k := w.startKilled(func(_ int, done string) bool { return strings.HasPrefix(done, write) })
	w.stop = func() {}
	ask()
	w.eventually(60*time.Second, write, k.isDead)
	stop()
	w.must(w.client.Delete(w.ctx, w.destination("p")))
}

// gone waits for the end of Source or Destination p.
func (w *world) gone(object client.Object) {
	w.Helper()
	w.eventually(60*time.Second, fmt.Sprintf("the end of %T p", object), func() bool {
		return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "p"}, object))
	})
}

// givenBack checks that a claim has its volume, with the policy that it had and what was written, and that the vault has none.
func (w *world) givenBack(name, file string) {
	w.Helper()
	w.eventually(20*time.Second, "claim "+name+" to be bound", func() bool { return w.pvc(name).Status.Phase == corev1.ClaimBound })
	w.givenBackWhole(w.bound(name, corev1.PersistentVolumeReclaimDelete), file)
	if n := w.vaultObjects(); n != 0 {
		w.Errorf("%d objects are left in the vault", n)
	}
}

// givenBackWhole checks that nothing of ours is left on a volume, and that it holds what it should.
func (w *world) givenBackWhole(pv *corev1.PersistentVolume, file string) {
	w.Helper()
	for _, name := range []string{v1alpha1.AnnotationOriginalReclaimPolicy, v1alpha1.AnnotationFencedAt} {
		if value := pv.Annotations[name]; value != "" {
			w.Errorf("volume %s still has %s: %s", pv.Name, name, value)
		}
	}
	w.holds(pv.Name, file)
}

// holds checks that a volume has a file, and gives the volume's folder.
func (w *world) holds(pvName, file string) string {
	w.Helper()
	path, err := w.site.node.VolumePath(w.ctx, pvName)
	w.must(err)
	if _, err := os.Stat(filepath.Join(path, file)); err != nil {
		w.Errorf("volume %s has lost its content: %v", pvName, err)
	}
	return path
}

// kept checks that a volume without a claim is at Retain and holds what it should.
func (w *world) kept(pvName, file string) string {
	w.Helper()
	if pv := w.pv(pvName); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		w.Errorf("volume %s has policy %s", pvName, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	return w.holds(pvName, file)
}

// boundByName checks that a volume is kept for whoever bears the claim's name.
func (w *world) boundByName(claim, pvName string) {
	w.Helper()
	w.noClaim(claim)
	if reference := w.pv(pvName).Spec.ClaimRef; reference.Namespace != w.namespace || reference.Name != claim || reference.UID != "" {
		w.Errorf("volume %s refers to %+v", pvName, reference)
	}
	w.claim(claim, "8Mi", corev1.PersistentVolumeFilesystem)
	if pv := w.bound(claim, corev1.PersistentVolumeReclaimRetain); pv.Name != pvName {
		w.Errorf("claim %s has volume %s, not %s", claim, pv.Name, pvName)
	}
}

// keptByName is how a Source goes that holds a volume whose claim is gone: the volume stays, for whoever bears the claim's name.
func keptByName(w *world) {
	w.Helper()
	w.gone(&v1alpha1.Source{})
	w.keptByName("data", "last-write")
	if n := w.vaultObjects(); n != 0 {
		w.Errorf("%d objects are left in the vault", n)
	}
}

func (w *world) keptByName(claim, file string) {
	w.Helper()
	volumes := w.volumesOf(claim)
	if len(volumes) != 1 {
		w.Fatalf("of claim %s there are the volumes %v", claim, volumes)
	}
	w.kept(volumes[0], file)
	w.eventually(10*time.Second, "an event that names the volume", func() bool { return w.noted("VolumeRetained", volumes[0]) })
	w.boundByName(claim, volumes[0])
}

// handedOver is how a Destination goes whose volume was given to a name that no claim bears yet.
func (w *world) handedOver() {
	w.Helper()
	w.keptByName("db", "dir")
	if left := w.inVault(); len(left) > 0 {
		w.Errorf("the vault still has %v", left)
	}
}

func (w *world) noClaim(name string) {
	w.Helper()
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.PersistentVolumeClaim{})
	if !apierrors.IsNotFound(err) {
		w.Errorf("claim %s is there: %v", name, err)
	}
}

func (w *world) deleteClaim(name string) {
	w.Helper()
	w.must(w.client.Delete(w.ctx, w.pvc(name)))
	w.eventually(20*time.Second, "the claim's end", func() bool {
		return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.PersistentVolumeClaim{}))
	})
}

// pendingClaim makes a claim for which nobody makes a volume.
func (w *world) pendingClaim(name string) {
	w.Helper()
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			DataSourceRef: &corev1.TypedObjectReference{APIGroup: ptr.To(v1alpha1.GroupVersion.Group), Kind: "Destination", Name: "p"},
			Resources:     corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Mi")}},
		},
	})
}

// volumesOf are the volumes that refer to a claim of the namespace, by name.
func (w *world) volumesOf(claim string) []string {
	w.Helper()
	return w.volumes(func(reference *corev1.ObjectReference) bool {
		return reference.Namespace == w.namespace && reference.Name == claim
	})
}

// volumesOfDestination are those that Destination p has in the vault.
func (w *world) volumesOfDestination() []string {
	w.Helper()
	set := names.Destination(w.namespace, "p")
	return w.volumes(func(reference *corev1.ObjectReference) bool {
		return reference.Namespace == vault && strings.HasPrefix(reference.Name, set)
	})
}

func (w *world) volumes(which func(*corev1.ObjectReference) bool) (found []string) {
	w.Helper()
	list := &corev1.PersistentVolumeList{}
	w.must(w.client.List(w.ctx, list))
	for _, pv := range list.Items {
		if pv.Spec.ClaimRef != nil && which(pv.Spec.ClaimRef) {
			found = append(found, pv.Name)
		}
	}
	return found
}

// noted tells whether an event of that reason names something.
func (w *world) noted(reason, name string) bool {
	w.Helper()
	list := &eventsv1.EventList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)))
	for _, event := range list.Items {
		if event.Reason == reason && strings.Contains(event.Note, name) {
			return true
		}
	}
	return false
}

// deletedAt is the deletion of a resource somewhere within one of its procedures.
type deletedAt struct {
	procedure
	object client.Object
	// left looks at what there is when the resource is deleted, and gives the check of the one state that follows.
	left func(w *world) (check func())
}

var deletedWithin = map[string]deletedAt{
	"promotion":                     {procedures["promotion"], &v1alpha1.Destination{}, afterPromotion},
	"restored promotion":            {procedures["restored promotion"], &v1alpha1.Destination{}, afterPromotion},
	"promotion in place of a claim": {procedures["promotion in place of a claim"], &v1alpha1.Destination{}, afterReplacement},
	"demotion": {procedures["demotion"], &v1alpha1.Destination{}, func(w *world) func() {
		if pvName := w.pvc("db").Spec.VolumeName; w.destination("p").Status.Promotion == nil {
			return func() { w.lost("db", pvName, "of-the-application") }
		}
		return func() { w.givenBack("db", "of-the-application") }
	}},
	"adoption": {procedures["adoption"], &v1alpha1.Destination{}, func(w *world) func() {
		pvName, status := w.pvc("db").Spec.VolumeName, w.destination("p").Status
		if status.Staging != nil || status.Fence != nil && status.Fence.Settled {
			return func() { w.lost("db", pvName, "") }
		}
		return func() { w.givenBack("db", "") }
	}},
	"final sync": {procedures["final sync"], &v1alpha1.Source{}, func(w *world) func() {
		return func() { w.givenBack("data", "last-write") }
	}},
	"final sync without claim": {procedure{
		before: procedures["final sync without claim"].before,
		ask:    func(w *world) { w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"}) },
		end:    func(w *world) { w.finalSynced(v1alpha1.ReasonCompleted) },
	}, &v1alpha1.Source{}, func(w *world) func() {
		pvName := w.source("p").Status.SourceVolume.PVName
		before := w.pv(pvName).Spec.ClaimRef
		if before.Namespace == vault {
			return func() { keptByName(w) }
		}
		return func() { // it was not taken yet
			w.kept(pvName, "last-write")
			if reference := w.pv(pvName).Spec.ClaimRef; *reference != *before || w.vaultObjects() != 0 {
				w.Errorf("the volume refers to %+v; %d objects are left in the vault", reference, w.vaultObjects())
			}
		}
	}},
}

// afterPromotion is how a Destination goes that was asked to promote: before the volume was given away it goes with it, as if
// nobody had asked; then it stays for whoever bears the claim's name; and once that claim is there, it gets the volume.
func afterPromotion(w *world) func() {
	w.Helper()
	promoted := w.volumesOf("db")
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "db"}, &corev1.PersistentVolumeClaim{})
	switch {
	case len(promoted) == 0:
		return func() {
			w.eventually(20*time.Second, "the volumes' end", func() bool { return len(w.volumesOfDestination()) == 0 })
			w.noClaim("db")
		}
	case apierrors.IsNotFound(err):
		return w.handedOver
	}
	return func() { w.givenBack("db", "dir") }
}

// afterReplacement is the same where a claim with another volume is in the way: as long as it is there it is as it was, and
// its volume stays in any case.
func afterReplacement(w *world) func() {
	w.Helper()
	var foreign string
	for _, name := range w.volumesOf("db") {
		if path, err := w.site.node.VolumePath(w.ctx, name); err == nil {
			if _, err := os.Stat(filepath.Join(path, "precious")); err == nil {
				foreign = name
			}
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "db"}, claim)
	switch {
	case err == nil && claim.Spec.VolumeName == foreign && claim.DeletionTimestamp.IsZero():
		return func() {
			w.givenBack("db", "precious")
			if mark := w.pvc("db").Annotations[v1alpha1.AnnotationReplacedBy]; mark != "" {
				w.Errorf("claim db is still marked as replaced by %s", mark)
			}
		}
	case err == nil && claim.Spec.VolumeName != foreign:
		return func() {
			w.givenBack("db", "dir")
			w.kept(foreign, "precious")
		}
	case len(w.volumesOf("db")) == 2:
		return func() {
			w.kept(foreign, "precious")
			for _, name := range w.volumesOf("db") {
				if name != foreign {
					w.kept(name, "dir")
				}
			}
		}
	}
	return func() {
		w.kept(foreign, "precious")
		w.eventually(20*time.Second, "the volume's end", func() bool { return len(w.volumesOfDestination()) == 0 })
	}
}

// lost is how a volume goes that was a user's and became a replica: it stays, and its claim without it.
func (w *world) lost(claim, pvName, file string) {
	w.Helper()
	w.kept(pvName, file)
	if phase := w.pvc(claim).Status.Phase; phase != corev1.ClaimLost || len(w.inVault()) > 0 {
		w.Errorf("claim %s is %s, the vault has %v", claim, phase, w.inVault())
	}
}

// everyWrite asks for all of TestDeletedAfterEachWrite, which takes ten minutes more.
const everyWrite = "VOLFERRY_EVERY_WRITE"

// Within each procedure the resource is deleted after the k-th write, for each k, or for every third one.
func TestDeletedAfterEachWrite(t *testing.T) {
	t.Parallel()
	step := 3
	if os.Getenv(everyWrite) != "" {
		step = 1
	}
	for name, d := range deletedWithin {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			writes := d.run(newKillWorld(t), 0)
			t.Logf("%d writes", writes)
			if step > 1 {
				t.Run("others", func(t *testing.T) {
					t.Skipf("two of three writes, to save time: %s=1 runs them", everyWrite)
				})
			}
			for k := 1; k <= writes; k += step {
				t.Run(fmt.Sprintf("%02d", k), func(t *testing.T) {
					t.Parallel()
					d.run(newKillWorld(t), k)
				})
			}
		})
	}
}

// run deletes the resource after the k-th write of the procedure; 0: after its end.
func (d deletedAt) run(w *world, k int) (writes int) {
	w.Helper()
	w.startController()
	d.before(w)
	w.stop()
	done := w.watchVolumes()
	var killed *killer
	w.stop, killed = w.startKilled(afterWrites(k))
	d.ask(w)
	if k == 0 {
		d.end(w)
	} else {
		// The last writes depend on the timing, so a few may not come about.
		for wait := time.Now(); !killed.isDead() && time.Since(wait) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		}
	}
	w.stop()
	w.removePods()
	check := d.left(w)
	object := d.object.DeepCopyObject().(client.Object)
	object.SetNamespace(w.namespace)
	object.SetName("p")
	w.must(w.client.Delete(w.ctx, object))
	w.startController()
	w.gone(object)
	check()
	done()
	return killed.count()
}
