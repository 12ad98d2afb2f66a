// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// promote sets spec.promote of Destination p.
func (w *world) promote(spec v1alpha1.PromoteSpec) {
	w.Helper()
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Promote = &spec })
}

func (w *world) demote() {
	w.Helper()
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Promote = nil })
}

func (w *world) destinationReason(kind string) string {
	w.Helper()
	return reason(w.destination("p").Status.Conditions, kind)
}

// promotedReason waits for a reason of condition Promoted.
func (w *world) promotedReason(want string) {
	w.Helper()
	w.eventually(60*time.Second, "Promoted with reason "+want, func() bool {
		return w.destinationReason(v1alpha1.ConditionPromoted) == want
	})
}

// pvc reads a claim of the world's namespace.
func (w *world) pvc(name string) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, claim))
	return claim
}

func (w *world) pv(name string) *corev1.PersistentVolume {
	w.Helper()
	pv := &corev1.PersistentVolume{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Name: name}, pv))
	return pv
}

// bound checks that a claim and its volume are bound to each other, that the volume has a policy, and that the claim bears
// no mark of ours (A38).
func (w *world) bound(name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	w.Helper()
	claim := w.pvc(name)
	pv := w.pv(claim.Spec.VolumeName)
	if claim.Status.Phase != corev1.ClaimBound || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		w.Errorf("claim %s is %s, its volume refers to %+v", name, claim.Status.Phase, pv.Spec.ClaimRef)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy != policy {
		w.Errorf("volume %s has policy %s, want %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, policy)
	}
	w.unmarked(claim)
	return pv
}

// unmarked checks that a user's claim has no owner, and no finalizer but that of the cluster.
func (w *world) unmarked(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	if len(claim.OwnerReferences) != 0 || len(claim.Finalizers) > 1 || len(claim.Finalizers) == 1 && claim.Finalizers[0] != "kubernetes.io/pvc-protection" {
		w.Errorf("claim %s has owners %v and finalizers %v", claim.Name, claim.OwnerReferences, claim.Finalizers)
	}
	if claim.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy {
		w.Errorf("claim %s is labelled as ours", claim.Name)
	}
}

// inVault tells which claims of Destination p are there.
func (w *world) inVault() []string {
	w.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(vault), client.MatchingLabels{v1alpha1.LabelChild: names.Destination(w.namespace, "p")}))
	var found []string
	for _, claim := range list.Items {
		found = append(found, claim.Name)
	}
	return found
}

// replica makes a pair p whose Destination holds what the claim data holds, with further parameters of the Destination. It
// gives the directory of data.
func (w *world) replica(method string, mode corev1.PersistentVolumeMode, further ...string) string {
	w.Helper()
	data := w.claim("data", "8Mi", mode)
	w.fill(fileOf(data, mode), 0, 300_000)
	parameters := map[string]string{"copyMethod": method, "capacity": "8Mi", "volumeMode": string(mode)}
	for i := 0; i < len(further); i += 2 {
		parameters[further[i]] = further[i+1]
	}
	w.pair("p", "data", map[string]string{"copyMethod": "Direct"}, parameters)
	w.demand("p", "1")
	w.eventually(30*time.Second, "the image", func() bool { return w.destination("p").Status.LatestImage != nil })
	return data
}

func fileOf(volume string, mode corev1.PersistentVolumeMode) string {
	if mode == corev1.PersistentVolumeBlock {
		return volume
	}
	return filepath.Join(volume, "dir", "file")
}

// A promotion gives the received data to a claim of the user's, who may use it like any other, and ends the listener.
func TestA18Promotion(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Snapshot", "Clone", "Direct"} {
		for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
			t.Run(method+string(mode), func(t *testing.T) {
				t.Parallel()
				if mode == corev1.PersistentVolumeBlock {
					if err := loopDevicesWork(); err != nil {
						t.Skip("no loop devices here: ", err)
					}
				}
				w := newWorld(t)
				data := w.replica(method, mode)
				w.promote(v1alpha1.PromoteSpec{PVCName: "db", Metadata: &v1alpha1.PromoteMetadata{Labels: map[string]string{"app": "db"}}})
				w.promotedReason(v1alpha1.ReasonPromoted)
				w.bound("db", corev1.PersistentVolumeReclaimDelete)
				if w.pvc("db").Labels["app"] != "db" {
					t.Error("the claim lacks the labels that were asked for")
				}
				if !same(data, w.path(w.namespace, "db")) {
					t.Error("the promoted volume differs from the source")
				}
				w.eventually(20*time.Second, "the end of the listener and its claims", func() bool {
					err := w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, "p")}, &batchv1.Job{})
					left := slices.DeleteFunc(w.inVault(), func(name string) bool { return method == "Clone" && name == w.destination("p").Status.LatestImage.Name })
					return apierrors.IsNotFound(err) && len(left) == 0
				})
				d := w.destination("p").Status
				if d.Phase != v1alpha1.DestinationPrimary || d.Promotion.PVName != w.pvc("db").Spec.VolumeName {
					t.Errorf("phase %s, promotion %+v", d.Phase, d.Promotion)
				}
				if n := w.events("Promoted"); n != 1 {
					t.Errorf("%d events Promoted", n)
				}
			})
		}
	}
}

// cutTransfer lets a transfer of a large change begin and not end, and gives the directory of the source.
func (w *world) cutTransfer(method string, further ...string) string {
	w.Helper()
	data := w.replica(method, corev1.PersistentVolumeFilesystem, further...)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.write(filepath.Join(data, name), 1<<20)
	}
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Parameters["bandwidthLimit"] = "256Ki" })
	w.ask("p", "2")
	staging := w.staging("p")
	w.eventually(60*time.Second, "the transfer to be under way", func() bool {
		found, err := filepath.Glob(filepath.Join(staging, "[abcd]"))
		return err == nil && len(found) > 0
	})
	return data
}

// Half a transfer is never promoted: where the staging volume is the image it is refused, and the next complete transfer
// is promoted; where there is an older image that one is.
func TestA19CutTransfer(t *testing.T) {
	t.Parallel()
	t.Run("Direct", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		data := w.cutTransfer("Direct")
		w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
		w.promotedReason(v1alpha1.ReasonImageInconsistent)
		if got := w.destinationReason(v1alpha1.ConditionImageAvailable); got != v1alpha1.ReasonImageInconsistent {
			t.Errorf("ImageAvailable says %s", got)
		}
		if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "db"}, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
			t.Errorf("half a transfer is shown: %v", err)
		}
		edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Parameters["bandwidthLimit"] = "" })
		w.promotedReason(v1alpha1.ReasonPromoted)
		if !same(data, w.path(w.namespace, "db")) {
			t.Error("the promoted volume differs from the source")
		}
	})
	t.Run("allowed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		data := w.cutTransfer("Direct")
		pvName := w.destination("p").Status.Staging.PVName
		w.promote(v1alpha1.PromoteSpec{PVCName: "db", AllowInconsistent: true})
		w.promotedReason(v1alpha1.ReasonPromoted)
		// That is what the staging volume holds: the first transfer, and what the second one had brought.
		if pv := w.bound("db", corev1.PersistentVolumeReclaimDelete); pv.Name != pvName {
			t.Errorf("volume %s was promoted, not %s", pv.Name, pvName)
		}
		promoted := w.path(w.namespace, "db")
		if !same(filepath.Join(data, "dir"), filepath.Join(promoted, "dir")) {
			t.Error("what the first transfer brought has changed")
		}
		if begun, err := filepath.Glob(filepath.Join(promoted, "[abcd]")); err != nil || len(begun) == 0 {
			t.Errorf("nothing of the second transfer is there: %v", err)
		}
		if same(data, promoted) {
			t.Error("the transfer was not cut")
		}
	})
	// An image that is restored into a class which waits for a first pod gets one.
	for name, parameters := range map[string][]string{
		"Snapshot": nil, "Clone": nil, "Snapshot, late binding": {"storageClassName", lateClass},
	} {
		t.Run(strings.NewReplacer(",", "", " ", "-").Replace(name), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			method, _, _ := strings.Cut(name, ",")
			w.cutTransfer(method, parameters...)
			w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
			w.promotedReason(v1alpha1.ReasonPromoted)
			entries, err := os.ReadDir(w.path(w.namespace, "db"))
			w.must(err)
			if len(entries) != 1 || entries[0].Name() != "dir" {
				t.Errorf("the promoted volume has %v, not what the image had", entries)
			}
			w.bound("db", corev1.PersistentVolumeReclaimDelete)
		})
	}
}

// A Source that missed the promotion is told so and writes nothing.
func TestA22StaleSource(t *testing.T) {
	t.Parallel()
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			if mode == corev1.PersistentVolumeBlock {
				if err := loopDevicesWork(); err != nil {
					t.Skip("no loop devices here: ", err)
				}
			}
			w := newWorld(t)
			data := w.replica("Snapshot", mode)
			w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
			w.promotedReason(v1alpha1.ReasonPromoted)
			before := w.copyOf(w.path(w.namespace, "db"), mode)
			w.fill(fileOf(data, mode), 0, 4096)
			w.ask("p", "2")
			w.eventually(90*time.Second, "StaleEpoch", func() bool {
				return reason(w.source("p").Status.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonStaleEpoch
			})
			w.refusedBy(v1alpha1.ReasonStaleEpoch, tokenIn(conditionsText(w.source("p").Status.Conditions)))
			w.eventually(20*time.Second, "the stop", func() bool { return w.source("p").Status.Phase == v1alpha1.SourceError })
			if !same(before, w.path(w.namespace, "db")) {
				t.Error("the stale Source has written")
			}
			if s := w.source("p").Status; s.Lineage.Seq != 1 {
				t.Errorf("lineage %+v", s.Lineage)
			}
		})
	}
}

// What was promoted stays when the Destination goes.
func TestA23PromotedVolumeStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.deleteAll()
	pv := w.bound("db", corev1.PersistentVolumeReclaimDelete)
	if pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] != "" {
		t.Errorf("annotations %v", pv.Annotations)
	}
	if !same(data, w.path(w.namespace, "db")) {
		t.Error("the promoted volume differs from the source")
	}
}

// A promotion that is asked for before anything has arrived waits, says so, and follows by itself. The policy can be
// chosen.
func TestA24PromotionAwaitsTheFirstImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem)
	w.write(filepath.Join(data, "file"), 1000)
	w.pair("p", "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"capacity": "8Mi"})
	w.promote(v1alpha1.PromoteSpec{ReclaimPolicy: corev1.PersistentVolumeReclaimRetain})
	w.promotedReason(v1alpha1.ReasonNoImage)
	w.eventually(10*time.Second, "an event", func() bool { return w.events("PromotionBlocked") == 1 })
	w.ask("p", "1")
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.bound("p", corev1.PersistentVolumeReclaimRetain)
	if !same(data, w.path(w.namespace, "p")) {
		t.Error("the promoted volume differs from the source")
	}
}

// A claim that an earlier demotion left without volume is bound again: the same object, with what it had written.
func TestA41LostClaimIsBoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	uid, volume := w.pvc("db").UID, w.pvc("db").Spec.VolumeName
	w.write(filepath.Join(w.path(w.namespace, "db"), "of-the-application"), 1000)
	for range 2 {
		w.demote()
		w.eventually(60*time.Second, "the demotion", func() bool {
			return w.pvc("db").Status.Phase == corev1.ClaimLost && w.destination("p").Status.Phase == v1alpha1.DestinationListening
		})
		if pv := w.pv(volume); pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Spec.ClaimRef.Namespace != vault {
			t.Errorf("the demoted volume has policy %s and refers to %+v", pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef)
		}
		w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
		w.promotedReason(v1alpha1.ReasonPromoted)
		if claim := w.pvc("db"); claim.UID != uid || claim.Spec.VolumeName != volume {
			t.Errorf("claim db has uid %s and volume %s, had %s and %s", claim.UID, claim.Spec.VolumeName, uid, volume)
		}
		w.bound("db", corev1.PersistentVolumeReclaimDelete)
	}
	if _, err := os.Stat(filepath.Join(w.path(w.namespace, "db"), "of-the-application")); err != nil {
		t.Error("what the application wrote is gone: ", err)
	}
}

// What is changed of spec.promote counts as long as it can: another name while the claim of the first one is in the way, and
// the promotion itself while a pod keeps the demotion from taking the volume.
func TestPromotionFollowsEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.promote(v1alpha1.PromoteSpec{PVCName: "data"})
	w.promotedReason(v1alpha1.ReasonPVCConflict)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.bound("data", corev1.PersistentVolumeReclaimRetain)
	w.bound("db", corev1.PersistentVolumeReclaimDelete)
	w.pod("db-0", "db")
	w.demote()
	w.promotedReason(v1alpha1.ReasonInUse)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.removePod("db-0")
	w.never(4*time.Second, "a demotion", func() bool { return w.destination("p").Status.Promotion.State != v1alpha1.PromotionPromoted })
	w.bound("db", corev1.PersistentVolumeReclaimDelete)
}

// A claim of that name with another volume is in the way; it is left alone unless the user says Replace and nobody uses it.
func TestA43Conflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	foreign := w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem)
	w.write(filepath.Join(foreign, "precious"), 1000)
	before := w.pvc("db")
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPVCConflict)
	w.eventually(10*time.Second, "an event", func() bool { return w.events("PVCConflict") == 1 })
	if pv := w.bound("db", corev1.PersistentVolumeReclaimDelete); pv.Name != before.Spec.VolumeName {
		t.Errorf("the claim has volume %s, had %s", pv.Name, before.Spec.VolumeName)
	}
	w.pod("user", "db")
	w.promote(v1alpha1.PromoteSpec{PVCName: "db", ConflictPolicy: v1alpha1.ConflictReplace})
	w.promotedReason(v1alpha1.ReasonInUse)
	w.removePod("user")
	w.promotedReason(v1alpha1.ReasonPromoted)
	if w.pvc("db").UID == before.UID || !same(data, w.path(w.namespace, "db")) {
		t.Error("the claim was not replaced by one with the promoted data")
	}
	w.bound("db", corev1.PersistentVolumeReclaimDelete)
	old := w.pv(before.Spec.VolumeName)
	if old.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the old volume has policy %s", old.Spec.PersistentVolumeReclaimPolicy)
	}
	if _, err := os.Stat(filepath.Join(foreign, "precious")); err != nil {
		t.Error("the old volume's data are gone: ", err)
	}
}

// A claim that waits for its volume, made by GitOps with a reference to the Destination, gets it. One that asks for what
// the volume is not is named.
func TestA44PendingClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	pending := func(name, size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				DataSourceRef: &corev1.TypedObjectReference{
					APIGroup: ptr.To(v1alpha1.GroupVersion.Group), Kind: "Destination", Name: "p",
				},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
			},
		}
	}
	large, fitting := pending("large", "1Gi"), pending("db", "4Mi")
	w.create(large, fitting)
	w.promote(v1alpha1.PromoteSpec{PVCName: "large"})
	w.promotedReason(v1alpha1.ReasonPVCIncompatible)
	w.demote()
	w.promotedReason(v1alpha1.ReasonNotRequested)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	if w.pvc("db").UID != fitting.UID || !same(data, w.path(w.namespace, "db")) {
		t.Error("the pending claim did not get the data")
	}
	w.bound("db", corev1.PersistentVolumeReclaimDelete)
}

// A claim of that name that is being deleted is waited for.
func TestPromotionAwaitsATerminatingClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica("Direct", corev1.PersistentVolumeFilesystem)
	w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem)
	held := pin[corev1.PersistentVolumeClaim](w, "db")
	w.must(w.client.Delete(w.ctx, held))
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPVCTerminating)
	unpin[corev1.PersistentVolumeClaim](w, "db")
	w.promotedReason(v1alpha1.ReasonPromoted)
	if w.pvc("db").UID == held.UID {
		t.Error("the claim was not made anew")
	}
	w.bound("db", corev1.PersistentVolumeReclaimDelete)
}

// pod makes a pod that uses a claim. No kubelet runs it, which plays no part.
func (w *world) pod(name, claim string) {
	w.Helper()
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "c", Image: "app"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	})
}

func (w *world) removePod(name string) {
	w.Helper()
	w.must(w.client.Delete(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, client.GracePeriodSeconds(0)))
}
