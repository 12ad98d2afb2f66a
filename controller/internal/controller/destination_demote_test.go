// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/names"
)

// vaultClaimOf is a claim that a Destination has in the vault.
func vaultClaimOf(r *destinationRun, name, volume, image string) *corev1.PersistentVolumeClaim {
	input := build.ClaimInput{Child: r.child(name), FromSnapshot: image}
	claim := build.Claim(input)
	claim.Spec.VolumeName, claim.Status.Phase = volume, corev1.ClaimBound
	return claim
}

func restoringRun(t *testing.T, claimsFor func(*destinationRun) []client.Object) *destinationRun {
	t.Helper()
	d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
	d.Spec.Promote = &v1alpha1.PromoteSpec{Image: "second"}
	run := destinationRunOf(fakeBase(t), d)
	d.Status.Images = []v1alpha1.Image{{Kind: imageSnapshot, Name: "second"}, {Kind: imageSnapshot, Name: "first"}}
	d.Status.LatestImage = &d.Status.Images[0]
	d.Status.LastReceived = &v1alpha1.Received{Seq: 2}
	d.Status.Staging = &v1alpha1.StagingVolume{PVName: "staging"}
	d.Status.Promotion = &v1alpha1.PromotionStatus{
		State: v1alpha1.PromotionPromoting, Step: v1alpha1.StepRestoring, Image: "second", Claim: names.Restored(run.childSet),
	}
	run.base = fakeBase(t, append(claimsFor(run), d)...)
	if err := run.APIReader.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	return run
}

// A volume that another image was restored into is not promoted, nor one that is on its way out.
func TestRestoredVolumeIsOfTheImage(t *testing.T) {
	for name, test := range map[string]struct {
		image string
		ends  bool
		used  bool
	}{
		"this image":    {"second", false, true},
		"another image": {"first", false, false},
		"going":         {"second", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := restoringRun(t, func(r *destinationRun) []client.Object {
				claim := vaultClaimOf(r, names.Restored(r.childSet), "restored", test.image)
				claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
				if test.ends {
					claim.DeletionTimestamp = ptr.To(metav1.Now())
				}
				return []client.Object{claim}
			})
			err := run.restoreImage(t.Context())
			if used := err == nil && run.destination.Status.Promotion.PVName == "restored"; used != test.used || trouble(err) != "" {
				t.Errorf("the volume was taken: %v, %v", used, err)
			}
		})
	}
}

// An undone promotion leaves no restored volume behind, and the loss of one loses nothing of the replica.
func TestUndonePromotion(t *testing.T) {
	for name, lost := range map[string]bool{"undone": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			run := restoringRun(t, func(r *destinationRun) []client.Object {
				return []client.Object{vaultClaimOf(r, r.childSet, "staging", ""), vaultClaimOf(r, names.Restored(r.childSet), "restored", "second")}
			})
			if lost {
				run.destination.Status.Promotion.PVName = "restored" // there is none of that name
			}
			for range 3 {
				if err := run.demote(t.Context()); trouble(err) != "" {
					t.Fatal(err)
				}
				if run.destination.Status.Promotion == nil {
					break
				}
			}
			status := run.destination.Status
			if status.Promotion != nil || status.LatestImage == nil || status.LastReceived == nil || status.Staging == nil {
				t.Errorf("the status is %+v", status)
			}
			err := run.APIReader.Get(t.Context(), run.key(names.Restored(run.childSet)), &corev1.PersistentVolumeClaim{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("the restored volume is left: %v", err)
			}
		})
	}
}

// handedTo is a volume that was given to claim data, and that claim, which the binder has not seen yet.
func handedTo(pvc, uid string) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim"}}
	claim.Spec.VolumeName = pvc
	pv := volumeFor("ns", "data")
	pv.Spec.ClaimRef.UID = types.UID(uid)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Annotations = map[string]string{v1alpha1.AnnotationOriginalReclaimPolicy: "Delete"}
	return pv, claim
}

// bind is what the binder does.
func bind(t *testing.T, b *base, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	for _, object := range []client.Object{pv, claim} {
		if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	pv.Spec.ClaimRef.UID, claim.Spec.VolumeName = claim.UID, pv.Name
	for _, object := range []client.Object{pv, claim} {
		if err := b.Client.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	claim.Status.Phase = corev1.ClaimBound
	if err := b.Client.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// unsettled are the states of a claim to which a volume was given before it is bound: whether the claim names the volume, and
// whether the volume names the claim's uid.
var unsettled = map[string][2]string{"both": {"pv", "claim"}, "named by the claim": {"pv", ""}, "by name only": {"", ""}}

// The end of a Destination waits for a claim that is just being bound to the volume it was given, to settle its policy.
func TestLeaveVolumeAwaitsTheBinder(t *testing.T) {
	for name, state := range unsettled {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
			d.Status.Promotion = &v1alpha1.PromotionStatus{State: v1alpha1.PromotionPromoting, PVCName: "data", PVName: "pv"}
			pv, claim := handedTo(state[0], state[1])
			b := fakeBase(t, d, claim, pv)
			b.Recorder = events.NewFakeRecorder(9)
			run := destinationRunOf(b, d)
			if err := run.leaveVolume(t.Context()); err == nil {
				t.Error("it did not wait")
			}
			bind(t, &b, pv, claim)
			if err := run.leaveVolume(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
				t.Fatal(err)
			}
			if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
				t.Errorf("policy %s", pv.Spec.PersistentVolumeReclaimPolicy)
			}
		})
	}
}

// A demotion that has waited for a final sync says so no longer once that is called off, whatever it waits for then.
func TestDemotionAfterACalledOffFinalSync(t *testing.T) {
	d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
	d.Status.Promotion = &v1alpha1.PromotionStatus{State: v1alpha1.PromotionDemoting, PVCName: "data", PVName: "pv"}
	source := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	source.Spec = v1alpha1.SourceSpec{Source: "data", ReplicationMethod: v1alpha1.MethodRsync, FinalSync: &v1alpha1.FinalSyncSpec{ID: "r1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-0"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	b := fakeBase(t, d, source, pod, volumeFor("ns", "data"))
	b.Recorder = events.NewFakeRecorder(9)
	if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	run := destinationRunOf(b, d)
	waits := func(dependencies, promoted string) {
		t.Helper()
		var wait *waitError
		if err := run.demote(t.Context()); !errors.As(err, &wait) {
			t.Fatal(err)
		}
		if d, p := run.set.Reason(v1alpha1.ConditionDependenciesReady), run.set.Reason(v1alpha1.ConditionPromoted); d != dependencies || p != promoted {
			t.Errorf("DependenciesReady has reason %s, Promoted %s", d, p)
		}
	}
	waits(v1alpha1.ReasonInUse, v1alpha1.ReasonDemoting)
	source.Spec.FinalSync = nil
	if err := b.Client.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	waits(v1alpha1.ReasonReady, v1alpha1.ReasonInUse)
}
