// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/test/controlplane"
	"volferry.io/controller/test/nodeless"
)

// openSecrets lets the controller read the namespace's Secrets: it copies a Source's key into the vault.
func (w *world) openSecrets() {
	w.Helper()
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "volferry-secrets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "volferry-secret-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: vault, Name: controlplane.ControllerServiceAccount}},
	})
}

// relocatable is a replica whose Source may be synced finally, with a change that the peer does not have yet.
func (w *world) relocatable() (data string) {
	w.Helper()
	w.openSecrets()
	data = w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.write(filepath.Join(data, "last-write"), 5000)
	return data
}

func (w *world) finalSync(spec v1alpha1.FinalSyncSpec) {
	w.Helper()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = &spec })
}

func (w *world) callOff() {
	w.Helper()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = nil })
}

// finalSynced waits for a reason of condition FinalSynced.
func (w *world) finalSynced(want string) {
	w.Helper()
	w.eventually(90*time.Second, "FinalSynced with reason "+want, func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionFinalSynced) == want
	})
}

// finalClaim is the claim that has the volume of Source p in the vault; nil if there is none.
func (w *world) finalClaim() *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.FinalSync(w.namespace, "p")}, claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return claim
}

// A volume that a pod uses, also one that is being deleted, or that is attached somewhere is not taken.
func TestA28A29InUse(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"pod": false, "terminating pod": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.relocatable()
			before := w.pv(w.pvc("data").Spec.VolumeName).Spec.ClaimRef
			w.pod("db-0", "data")
			if ends {
				w.must(w.client.Delete(w.ctx, pin[corev1.Pod](w, "db-0")))
				defer unpin[corev1.Pod](w, "db-0")
			}
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonInUse)
			condition := meta.FindStatusCondition(w.source("p").Status.Conditions, v1alpha1.ConditionFinalSynced)
			if !strings.Contains(condition.Message, "db-0") {
				t.Errorf("the pod is not named: %s", condition.Message)
			}
			w.never(3*time.Second, "a fence", func() bool { return w.finalClaim() != nil })
			if now := w.bound("data", corev1.PersistentVolumeReclaimRetain).Spec.ClaimRef; *now != *before {
				t.Errorf("the volume refers to %+v, referred to %+v", now, before)
			}
		})
	}
	t.Run("attachment", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.relocatable()
		pv := w.pvc("data").Spec.VolumeName
		attachment := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "example.com", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		}
		w.create(attachment)
		w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
		w.finalSynced(v1alpha1.ReasonInUse)
		w.must(w.client.Delete(w.ctx, attachment))
		w.finalSynced(v1alpha1.ReasonCompleted)
	})
	t.Run("adopt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.claim("old", "8Mi", corev1.PersistentVolumeFilesystem)
		before := w.pv(w.pvc("old").Spec.VolumeName).Spec.ClaimRef
		w.pod("db-0", "old")
		w.create(&v1alpha1.Destination{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"},
			Spec:       v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "old"}},
		})
		w.eventually(30*time.Second, "InUse", func() bool {
			c := meta.FindStatusCondition(w.destination("p").Status.Conditions, v1alpha1.ConditionDependenciesReady)
			return c != nil && c.Reason == v1alpha1.ReasonInUse && strings.Contains(c.Message, "db-0")
		})
		if now := w.bound("old", corev1.PersistentVolumeReclaimDelete).Spec.ClaimRef; *now != *before {
			t.Errorf("the volume refers to %+v, referred to %+v", now, before)
		}
		w.removePod("db-0")
		w.eventually(60*time.Second, "the adoption", func() bool { return w.destination("p").Status.Phase == v1alpha1.DestinationListening })
	})
}

// A pod that starts while the fence settles is found: the volume goes back, and the fence is tried again once it is gone.
// From the fence on, a pod cannot mount (A32).
func TestA32Fence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	uid := w.pvc("data").UID
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.eventually(30*time.Second, "the fence", func() bool { return w.finalClaim() != nil })
	w.pod("late", "data")
	w.eventually(30*time.Second, "the volume to go back", func() bool {
		claim := w.pvc("data")
		return w.finalClaim() == nil && claim.Status.Phase == corev1.ClaimBound && w.pv(claim.Spec.VolumeName).Spec.ClaimRef.UID == uid
	})
	w.eventually(10*time.Second, "an event", func() bool { return w.events("FenceRolledBack") > 0 })
	w.finalSynced(v1alpha1.ReasonInUse)
	w.removePod("late")
	w.finalSynced(v1alpha1.ReasonCompleted)
	// A kubelet refuses a claim that is not bound, or whose uid the volume does not have.
	w.pod("later", "data")
	w.never(3*time.Second, "a way to mount the volume", func() bool {
		claim := w.pvc("data")
		return claim.Status.Phase == corev1.ClaimBound || w.pv(claim.Spec.VolumeName).Spec.ClaimRef.UID == uid
	})
	w.unmarked(w.pvc("data"))
	if !same(data, w.staging("p")) {
		t.Error("the peer does not have the last write")
	}
}

// Workloads that are named are waited for, in the eyes of their controllers.
func TestA33WaitForWorkloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "db"}}},
			},
		},
	}
	w.create(set)
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", WaitForWorkloads: []v1alpha1.WorkloadReference{
		{Kind: "Deployment", Name: "absent"}, {Kind: "StatefulSet", Name: "db"},
	}})
	w.finalSynced(v1alpha1.ReasonWaitingForWorkloads)
	w.never(3*time.Second, "a fence", func() bool { return w.finalClaim() != nil })
	edit(w, set.Name, func(set *appsv1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](0) })
	w.finalSynced(v1alpha1.ReasonCompleted)
}

// A workload that comes back while the fence settles gets its volume back, although it was to be waited for.
func TestWorkloadReturnsDuringTheFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.options.FenceSettle = 10 * time.Second })
	w.relocatable()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", WaitForWorkloads: []v1alpha1.WorkloadReference{{Kind: "Job", Name: "db"}}})
	w.eventually(30*time.Second, "the fence", func() bool { return w.finalClaim() != nil })
	w.create(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "db"}},
		}}},
	})
	w.pod("db-0", "data")
	w.eventually(30*time.Second, "the volume to go back", func() bool {
		return w.finalClaim() == nil && w.pvc("data").Status.Phase == corev1.ClaimBound
	})
	w.finalSynced(v1alpha1.ReasonWaitingForWorkloads)
	w.removePod("db-0")
}

// The strict rule: the claim is to be deleted first.
func TestA34WaitForPVCDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", WaitForPVCDeletion: true})
	w.finalSynced(v1alpha1.ReasonWaitingForPVCDeletion)
	w.never(3*time.Second, "a fence", func() bool { return w.finalClaim() != nil })
	w.must(w.client.Delete(w.ctx, w.pvc("data")))
	w.finalSynced(v1alpha1.ReasonCompleted)
}

// The workload and its claim are gone, the volume is not: it is synced from the vault, and given back by name.
func TestA35ClaimGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	pvName := w.pvc("data").Spec.VolumeName
	w.must(w.client.Delete(w.ctx, w.pvc("data")))
	w.eventually(20*time.Second, "the claim's end", func() bool {
		return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "data"}, &corev1.PersistentVolumeClaim{}))
	})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.ready()
	if claim := w.finalClaim(); claim == nil || claim.Spec.VolumeName != pvName || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the claim in the vault: %+v", claim)
	}
	if !same(data, w.staging("p")) {
		t.Error("the peer does not have the last write")
	}
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", AfterSync: v1alpha1.AfterSyncRelease})
	w.eventually(30*time.Second, "the release", func() bool { return w.vaultObjects() == 0 })
	pv := w.pv(pvName)
	if pv.Spec.ClaimRef.Namespace != w.namespace || pv.Spec.ClaimRef.Name != "data" || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the volume refers to %+v with policy %s", pv.Spec.ClaimRef, pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

// vaultObjects counts what a final sync of Source p has in the vault.
func (w *world) vaultObjects() (found int) {
	w.Helper()
	key := client.ObjectKey{Namespace: vault, Name: names.FinalSync(w.namespace, "p")}
	for _, object := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.Secret{}, &batchv1.Job{}} {
		if err := w.client.Get(w.ctx, key, object); err == nil {
			found++
		} else if !apierrors.IsNotFound(err) {
			w.Fatal(err)
		}
	}
	return found
}

// The same two edits move a volume whose claim is there, is being deleted, or is gone, with the same end; promotion waits
// for the final sync that it names (A40), and one edit is all that the final sync needs (A39).
func TestA36A39A40A45Relocation(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"present", "terminating", "gone"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			data := w.relocatable()
			pvName := w.pvc("data").Spec.VolumeName
			if state != "present" {
				claim := w.pvc("data")
				if state == "terminating" {
					claim = pin[corev1.PersistentVolumeClaim](w, "data")
					defer unpin[corev1.PersistentVolumeClaim](w, "data")
				}
				w.must(w.client.Delete(w.ctx, claim))
			}
			w.promote(v1alpha1.PromoteSpec{PVCName: "db", RequireFinalSync: "r1"})
			w.promotedReason(v1alpha1.ReasonWaitingForFinalSync)
			if state == "present" {
				w.demand("p", "2") // an ordinary sync is not it
				w.promotedReason(v1alpha1.ReasonWaitingForFinalSync)
				w.write(filepath.Join(data, "very-last-write"), 5000)
			}
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.promotedReason(v1alpha1.ReasonPromoted)
			w.finalSynced(v1alpha1.ReasonCompleted)
			w.bound("db", corev1.PersistentVolumeReclaimDelete)
			if !same(data, w.path(w.namespace, "db")) {
				t.Error("the promoted volume differs from the source")
			}
			w.eventually(20*time.Second, "phase Fenced", func() bool {
				s := w.source("p").Status
				return s.Phase == v1alpha1.SourceFenced && s.ActiveSync == nil
			})
			pv := w.pv(pvName)
			if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Spec.ClaimRef.Name != names.FinalSync(w.namespace, "p") {
				t.Errorf("the old volume has policy %s and refers to %+v", pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef)
			}
			w.never(2*time.Second, "another sync", func() bool { return w.source("p").Status.ActiveSync != nil })
		})
	}
}

// A final sync that is called off, wherever it stands, leaves the claim bound as before, and the schedule resumes.
func TestA46CalledOff(t *testing.T) {
	t.Parallel()
	for _, at := range []string{v1alpha1.ReasonInUse, v1alpha1.ReasonFencing, v1alpha1.ReasonSyncing} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.relocatable()
			uid := w.pvc("data").UID
			switch at {
			case v1alpha1.ReasonInUse:
				w.pod("db-0", "data")
			case v1alpha1.ReasonSyncing:
				w.inject(slowly(20 * time.Second))
			}
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(at)
			if at == v1alpha1.ReasonSyncing {
				w.eventually(30*time.Second, "the mover", func() bool { return w.vaultObjects() == 3 })
			}
			w.callOff()
			w.finalSynced(v1alpha1.ReasonNotRequested)
			w.inject(nil)
			w.eventually(20*time.Second, "the claim to be bound", func() bool { return w.pvc("data").Status.Phase == corev1.ClaimBound })
			w.bound("data", corev1.PersistentVolumeReclaimRetain)
			if w.pvc("data").UID != uid || w.vaultObjects() != 0 {
				t.Errorf("uid %s, was %s; %d objects are left in the vault", w.pvc("data").UID, uid, w.vaultObjects())
			}
			w.demand("p", "afterwards")
		})
	}
}

// The original policy comes back with the end of the Source, and so the end of the application reclaims its volume; a
// volume that was retained before stays so.
func TestA47OriginalPolicy(t *testing.T) {
	t.Parallel()
	for _, original := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(string(original), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.openSecrets()
			w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem)
			pv := edit(w, w.pvc("data").Spec.VolumeName, func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = original
			})
			w.pair("p", "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"capacity": "8Mi"})
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonCompleted)
			w.must(w.client.Delete(w.ctx, w.source("p")))
			w.eventually(30*time.Second, "the claim with its policy", func() bool {
				claim := w.pvc("data")
				return claim.Status.Phase == corev1.ClaimBound && w.pv(pv.Name).Spec.PersistentVolumeReclaimPolicy == original && w.vaultObjects() == 0
			})
			w.bound("data", original)
			w.must(w.client.Delete(w.ctx, w.pvc("data")))
			gone := func() bool {
				return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Name: pv.Name}, &corev1.PersistentVolume{}))
			}
			if original == corev1.PersistentVolumeReclaimDelete {
				w.eventually(30*time.Second, "the volume's end", gone)
			} else {
				w.never(3*time.Second, "the volume's end", gone)
			}
		})
	}
}

// A volume that was reclaimed cannot be synced; that is said once and for all.
func TestA49VolumeGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	pvName := w.pvc("data").Spec.VolumeName
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.RetainSourceVolume = ptr.To(false) })
	w.eventually(20*time.Second, "the original policy", func() bool {
		return w.pv(pvName).Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	})
	w.must(w.client.Delete(w.ctx, w.pvc("data")))
	w.eventually(30*time.Second, "the volume's end", func() bool {
		return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Name: pvName}, &corev1.PersistentVolume{}))
	})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonVolumeGone)
	w.never(3*time.Second, "another try", func() bool { return w.vaultObjects() != 0 || w.events("VolumeGone") != 1 })
	w.callOff()
	w.finalSynced(v1alpha1.ReasonNotRequested)
}

// A final sync is tried again until it is done; what no retry can mend stops it, until an edit. The volume stays fenced.
func TestFinalSyncFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	var failed atomic.Int32
	fail := func(code int32) {
		w.inject(func(pod *corev1.Pod) nodeless.Injection {
			if pod.Labels[v1alpha1.LabelChild] != names.FinalSync(w.namespace, "p") {
				return nodeless.Injection{}
			}
			failed.Add(1)
			return nodeless.Injection{Skip: true, ExitCode: code}
		})
	}
	fail(13)
	edit(w, "p", func(s *v1alpha1.Source) {
		s.Spec.Parameters["retries"] = "0"
		s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: "r1"}
	})
	w.eventually(60*time.Second, "three tries", func() bool { return failed.Load() >= 3 })
	// What may be mended at the peer is tried again, too.
	fail(20)
	before := failed.Load()
	w.eventually(60*time.Second, "more tries", func() bool { return failed.Load() >= before+2 })
	if claim := w.finalClaim(); claim == nil || w.pvc("data").Status.Phase != corev1.ClaimLost {
		t.Error("the volume is not fenced any more")
	}
	// Each try is made with the key as it is by then.
	right := w.changeKey([]byte(strings.Repeat("0", 64)))
	w.inject(nil)
	w.eventually(60*time.Second, "a wrong key to be refused", func() bool {
		mover := w.source("p").Status.LatestMover
		return mover != nil && mover.ExitCode == 11
	})
	// Only an edit of the Source mends this one.
	fail(2)
	w.eventually(60*time.Second, "the stop", func() bool {
		s := w.source("p").Status
		return s.Retry != nil && s.Retry.Permanent && s.ActiveSync == nil && s.Phase == v1alpha1.SourceError &&
			reason(s.Conditions, v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonError
	})
	w.inject(nil)
	w.changeKey(right)
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Parameters["retries"] = "2" })
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.eventually(30*time.Second, "the last write at the peer", func() bool { return same(data, w.staging("p")) })
}

// changeKey replaces the key of Source p and gives the one that it had.
func (w *world) changeKey(psk []byte) (before []byte) {
	w.Helper()
	edit(w, "p-key", func(key *corev1.Secret) {
		before = key.Data["psk"]
		key.Data["psk"] = psk
	})
	return before
}

// Without the right to read the key there is no sync for which the volume would have to be taken.
func TestFinalSyncNeedsTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.eventually(30*time.Second, "SecretForbidden", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSecretForbidden
	})
	w.bound("data", corev1.PersistentVolumeReclaimRetain)
	w.openSecrets()
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.ready()
	w.forbidden.Store(0) // the one that this test is about
}

// ready checks that Source p says of nothing that it is missing.
func (w *world) ready() {
	w.Helper()
	w.eventually(10*time.Second, "DependenciesReady", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonReady
	})
}

// A key that is missing is told of whatever else the final sync waits for, and no longer once it is there.
func TestFinalSyncFindsTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	missing := func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSecretNotFound
	}
	key := &corev1.Secret{}
	takeKey := func() {
		w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "p-key"}, key))
		w.must(w.client.Delete(w.ctx, key))
		w.eventually(30*time.Second, "SecretNotFound", missing)
	}
	giveKey := func() {
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p-key"}, Data: key.Data})
	}
	w.create(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "db"}},
		}}},
	})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1", WaitForWorkloads: []v1alpha1.WorkloadReference{{Kind: "Job", Name: "db"}}})
	w.finalSynced(v1alpha1.ReasonWaitingForWorkloads)
	takeKey()
	giveKey()
	w.finalSynced(v1alpha1.ReasonWaitingForWorkloads)
	w.ready()
	// The same while it waits for a pod.
	w.pod("db-0", "data")
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonInUse)
	takeKey()
	giveKey()
	w.finalSynced(v1alpha1.ReasonInUse)
	w.ready()
	w.removePod("db-0")
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.ready()
}

// A Destination that is to adopt the claim of a final sync, asked for by the same edit, takes the volume after it.
func TestFinalSyncBeforeAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	pvName := w.pvc("data").Spec.VolumeName
	w.pod("db-0", "data")
	w.create(&v1alpha1.Destination{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "home"},
		Spec:       v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}},
	})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonInUse)
	w.removePod("db-0")
	w.finalSynced(v1alpha1.ReasonCompleted)
	if !same(data, w.staging("p")) {
		t.Error("the peer does not have the last write")
	}
	w.eventually(60*time.Second, "the adoption", func() bool {
		home := w.destination("home").Status
		return home.Phase == v1alpha1.DestinationListening && home.Staging.PVName == pvName
	})
}
