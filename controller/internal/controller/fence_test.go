// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/names"
)

// fakeBase is what both reconcilers have, with an API server that has these objects.
func fakeBase(t *testing.T, objects ...client.Object) base {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Source{}, &v1alpha1.Destination{}).Build()
	return newBase(Services{Client: c, APIReader: c, Clock: clock.RealClock{}, Options: Options{VaultNamespace: "vault"}})
}

func destinationRunOf(b base, destination *v1alpha1.Destination) *destinationRun {
	return &destinationRun{
		DestinationReconciler: &DestinationReconciler{base: b}, destination: destination,
		set:      conditions.For(&destination.Status.Conditions, 1),
		childSet: names.Destination(destination.Namespace, destination.Name),
	}
}

func volumeFor(namespace, name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name}},
	}
}

// A volume is taken by a Destination only after the final syncs that were asked for, whether they have it already or not.
func TestFinalSyncComesFirst(t *testing.T) {
	source := func(asked, id, phase string) *v1alpha1.Source {
		s := &v1alpha1.Source{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
			Spec:       v1alpha1.SourceSpec{Source: "data", ReplicationMethod: v1alpha1.MethodRsync},
		}
		if asked != "" {
			s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: asked}
		}
		if id != "" {
			s.Status.FinalSync = &v1alpha1.FinalSyncStatus{ID: id, Phase: phase}
			if phase == v1alpha1.ReasonCompleted {
				s.Status.FinalSync.Completed = ptr.To(metav1.Now())
			}
		}
		return s
	}
	other := source("r1", "r1", v1alpha1.ReasonSyncing)
	other.Spec.Source = "other"
	held, free := volumeFor("vault", names.FinalSync("ns", "s")), volumeFor("ns", "data")
	for name, test := range map[string]struct {
		source         *v1alpha1.Source
		pv             *corev1.PersistentVolume
		waits, another bool // another: the volume is another's in the eyes of the fence
	}{
		"not asked for":              {source("", "", ""), free, false, false},
		"not begun":                  {source("r1", "", ""), free, true, false},
		"waiting":                    {source("r1", "r1", v1alpha1.ReasonInUse), free, true, false},
		"running":                    {source("r1", "r1", v1alpha1.ReasonSyncing), held, true, true},
		"held":                       {source("r1", "r1", v1alpha1.ReasonCompleted), held, false, false},
		"held, another is asked for": {source("r2", "r1", v1alpha1.ReasonCompleted), held, true, true},
		"called off, still there":    {source("", "r1", v1alpha1.ReasonSyncing), held, true, true},
		"no volume":                  {source("r1", "r1", v1alpha1.ReasonVolumeGone), free, false, false},
		"of another claim":           {other, free, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := fakeBase(t, test.source)
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}
			run := destinationRunOf(b, d)
			if err := run.awaitFinalSync(t.Context(), test.pv, "data"); (err != nil) != test.waits {
				t.Errorf("it waits: %v", err)
			}
			who, err := b.othersVolume(t.Context(), taking{
				child: build.Child{Owner: d, Namespace: "vault", Name: run.childSet}, pvName: "pv", pvcName: "data",
			}, test.pv)
			if err != nil || (who != "") != test.another {
				t.Errorf("whose it is: %q, %v", who, err)
			}
		})
	}
}

// A volume is pointed at the vault's claim, also where it refers to one of that name that is gone; the user's claim, which
// still says Bound, is touched so that the binder looks at it.
func TestRedirectToVault(t *testing.T) {
	d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
	users := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "user"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	ours := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vault", Name: "child", UID: "ours"}}
	for name, test := range map[string]struct {
		namespace, claim string
		uid              types.UID
		want             types.UID
	}{
		"the user's":                {"ns", "data", "user", ""},
		"ours":                      {"vault", "child", "ours", "ours"},
		"ours, not bound yet":       {"vault", "child", "", ""},
		"a claim of ours from then": {"vault", "child", "dead", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pv := volumeFor(test.namespace, test.claim)
			pv.Spec.ClaimRef.UID = test.uid
			b := fakeBase(t, pv, users.DeepCopy(), ours.DeepCopy())
			pv, err := b.findPV(t.Context(), "pv")
			if err != nil {
				t.Fatal(err)
			}
			taking := taking{child: build.Child{Owner: d, Namespace: "vault", Name: "child"}, pvName: "pv", pvcName: "data"}
			if err := b.redirectToVault(t.Context(), taking, pv); err != nil {
				t.Fatal(err)
			}
			now, err := b.findPV(t.Context(), "pv")
			if err != nil || !refers(now, "vault", "child") || now.Spec.ClaimRef.UID != test.want {
				t.Errorf("the volume refers to %+v, %v", now.Spec.ClaimRef, err)
			}
			claim, err := b.findClaim(t.Context(), client.ObjectKeyFromObject(users))
			if err != nil || claim.Annotations[v1alpha1.AnnotationRebound] != now.ResourceVersion {
				t.Errorf("the user's claim was not touched: %v, %v", claim.Annotations, err)
			}
		})
	}
}

// A volume that is given back after its claim was deleted goes to the claim of that name that waits for it, with the policy
// that it had; without one it is kept for the name, and stays.
func TestGiveBackToAnotherClaim(t *testing.T) {
	for name, test := range map[string]struct {
		there  bool
		volume string // that the claim has
		uid    types.UID
		policy corev1.PersistentVolumeReclaimPolicy
	}{
		"none":          {false, "", "", corev1.PersistentVolumeReclaimRetain},
		"waits":         {true, "", "new", corev1.PersistentVolumeReclaimDelete},
		"names it":      {true, "pv", "new", corev1.PersistentVolumeReclaimDelete},
		"has another's": {true, "other", "", corev1.PersistentVolumeReclaimRetain},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
			d.Status.Fence = &v1alpha1.Fence{PVName: "pv", PVCName: "data", PVCUID: "old"}
			pv := volumeFor("vault", names.Destination("ns", "d"))
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			pv.Annotations = map[string]string{v1alpha1.AnnotationOriginalReclaimPolicy: "Delete"}
			objects := []client.Object{d, pv}
			if test.there {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "new"}}
				claim.Spec.VolumeName = test.volume
				objects = append(objects, claim)
			}
			b := fakeBase(t, objects...)
			if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			run := destinationRunOf(b, d)
			if err := run.giveBack(t.Context(), run.taking("pv", "data")); err != nil {
				t.Fatal(err)
			}
			if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
				t.Fatal(err)
			}
			if !refers(pv, "ns", "data") || pv.Spec.ClaimRef.UID != test.uid || pv.Spec.PersistentVolumeReclaimPolicy != test.policy {
				t.Errorf("the volume refers to %+v with policy %s", pv.Spec.ClaimRef, pv.Spec.PersistentVolumeReclaimPolicy)
			}
		})
	}
}
