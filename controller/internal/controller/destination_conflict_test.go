// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"volferry.io/controller/api/v1alpha1"
)

// A claim that has lost its volume to the Destination itself is not in the way of another volume; each other one is.
func TestPlaceOfALostClaim(t *testing.T) {
	for name, test := range map[string]struct {
		phase    corev1.PersistentVolumeClaimPhase
		volume   string
		replaced bool
	}{
		"lost to us":           {corev1.ClaimLost, "staging", true},
		"lost to somebody":     {corev1.ClaimLost, "other", false},
		"bound":                {corev1.ClaimBound, "other", false},
		"bound, as it may say": {corev1.ClaimBound, "staging", false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: test.volume},
				Status:     corev1.PersistentVolumeClaimStatus{Phase: test.phase},
			}
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}
			d.Spec.Promote = &v1alpha1.PromoteSpec{}
			d.Status.Staging = &v1alpha1.StagingVolume{PVName: "staging"}
			b := fakeBase(t, claim)
			b.Recorder = events.NewFakeRecorder(9)
			run := destinationRunOf(b, d)
			if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			var wait *waitError
			if err := run.placeFree(t.Context(), claim, volumeFor("vault", "restored")); !errors.As(err, &wait) {
				t.Fatal(err)
			}
			err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
			if replaced := apierrors.IsNotFound(err); replaced != test.replaced {
				t.Errorf("replaced: %v, %v", replaced, err)
			}
		})
	}
}

func TestMisfit(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: "fast",
	}}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaimSpec)
		want   string // is part of the answer; empty: it fits
	}{
		"fits": {func(*corev1.PersistentVolumeClaimSpec) {}, ""},
		"smaller": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		}, ""},
		"larger": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		}, "3Gi"},
		"block":         {func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "volumeMode"},
		"files, stated": {func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem) }, ""},
		"other class":   {func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("slow") }, "class"},
		"no class":      {func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = nil }, "class"},
		"more access": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = append(s.AccessModes, corev1.ReadWriteMany)
		}, "ReadWriteMany"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: ptr.To("fast"),
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
			}}
			test.change(&claim.Spec)
			if got := misfit(claim, pv); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A claim that is to be replaced is marked, and its volume's policy set to Retain, before it is deleted. Where it comes to
// nothing, because the user wants something else by then, both are taken back.
func TestReplacementComesToNothing(t *testing.T) {
	for name, after := range map[string]func(context.Context, *destinationRun, *corev1.PersistentVolumeClaim) error{
		"Replace is taken back": func(ctx context.Context, r *destinationRun, claim *corev1.PersistentVolumeClaim) error {
			r.destination.Spec.Promote.ConflictPolicy = ""
			return r.placeFree(ctx, claim, volumeFor("vault", r.childSet))
		},
		"another name": func(ctx context.Context, r *destinationRun, _ *corev1.PersistentVolumeClaim) error {
			r.destination.Spec.Promote.PVCName = "elsewhere"
			return r.followEdit(ctx)
		},
		"no promotion": func(ctx context.Context, r *destinationRun, _ *corev1.PersistentVolumeClaim) error {
			r.destination.Spec.Promote = nil
			return r.demote(ctx)
		},
		"no Destination": func(ctx context.Context, r *destinationRun, _ *corev1.PersistentVolumeClaim) error {
			return r.leaveVolume(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim", Annotations: map[string]string{"user's": "own"}},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "foreign"},
				Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			}
			foreign := volumeFor("ns", "data")
			foreign.Name, foreign.Spec.ClaimRef.UID = "foreign", claim.UID
			foreign.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
			d.Spec.Promote = &v1alpha1.PromoteSpec{PVCName: "data", ConflictPolicy: v1alpha1.ConflictReplace}
			d.Status.Promotion = &v1alpha1.PromotionStatus{State: v1alpha1.PromotionPromoting, Step: v1alpha1.StepRebinding, PVCName: "data", PVName: "pv"}
			d.Status.Staging = &v1alpha1.StagingVolume{PVName: "pv"}
			run := destinationRunOf(base{}, d)
			pv := volumeFor("vault", run.childSet)
			b := fakeBase(t, d, claim, foreign, pv)
			b.Recorder = events.NewFakeRecorder(9)
			read := func(objects ...client.Object) {
				t.Helper()
				for _, object := range objects {
					if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
						t.Fatal(err)
					}
				}
			}
			read(d, claim)
			run.base = b
			deletes := b.Client
			run.Client = interceptor.NewClient(deletes.(client.WithWatch), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return errors.New("killed")
				},
			})
			if err := run.placeFree(t.Context(), claim, pv); err == nil {
				t.Fatal("the claim was replaced")
			}
			read(claim, foreign)
			if claim.Annotations[v1alpha1.AnnotationReplacedBy] == "" || foreign.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
				t.Fatalf("the claim has annotations %v, its volume policy %s", claim.Annotations, foreign.Spec.PersistentVolumeReclaimPolicy)
			}
			run.Client = deletes
			var wait *waitError
			if err := after(t.Context(), run, claim); err != nil && !errors.As(err, &wait) {
				t.Fatal(err)
			}
			read(claim, foreign)
			if len(claim.Annotations) != 1 || foreign.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || len(foreign.Annotations) != 0 {
				t.Errorf("the claim has annotations %v, its volume %v and policy %s", claim.Annotations, foreign.Annotations, foreign.Spec.PersistentVolumeReclaimPolicy)
			}
		})
	}
}
