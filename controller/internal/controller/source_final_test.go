// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/limiter"
	"volferry.io/controller/internal/names"
)

func sourceRunOf(b base, source *v1alpha1.Source) *sourceRun {
	return &sourceRun{
		SourceReconciler: &SourceReconciler{base: b}, source: source,
		set:      conditions.For(&source.Status.Conditions, 1),
		childSet: names.Source(source.Namespace, source.Name),
	}
}

// The peer may have what an attempt sent whose end nobody saw: another try of the same number keeps its id, whether a final
// sync begins or is called off in between.
func TestAttemptOutlivesAFinalSync(t *testing.T) {
	failed := &v1alpha1.Retry{AttemptID: "attempt", Failures: 3, Permanent: true, Requests: []string{"onDemand:1"}}
	for name, step := range map[string]func(*sourceRun) error{
		"begun":      func(r *sourceRun) error { return r.beginFinalSync(t.Context()) },
		"called off": func(r *sourceRun) error { return r.abortFinalSync(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			source := &v1alpha1.Source{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
				Spec:       v1alpha1.SourceSpec{Source: "data", FinalSync: &v1alpha1.FinalSyncSpec{ID: "r1"}},
			}
			source.Status.FinalSync = &v1alpha1.FinalSyncStatus{ID: "r0", Phase: v1alpha1.ReasonSyncing}
			source.Status.Retry = failed.DeepCopy()
			b := fakeBase(t, source)
			run := sourceRunOf(b, source)
			if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
				t.Fatal(err)
			}
			if err := step(run); trouble(err) != "" {
				t.Fatal(err)
			}
			if retry := source.Status.Retry; retry == nil || retry.AttemptID != "attempt" || retry.Failures != 0 || retry.Permanent {
				t.Errorf("retry %+v", retry)
			}
		})
	}
}

// A final sync goes on in the epoch of the last promotion, and with the volume that it gave to the claim.
func TestFinalSyncFollowsPromotion(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "promoted"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	pv := volumeFor("ns", "data")
	pv.Name, pv.Spec.ClaimRef.UID = "promoted", "claim"
	pv.Annotations = map[string]string{v1alpha1.AnnotationLineage: `{"epoch":"2-abc","seq":7}`}
	source := &v1alpha1.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec:       v1alpha1.SourceSpec{Source: "data", FinalSync: &v1alpha1.FinalSyncSpec{ID: "r2"}},
	}
	source.Status.SourceVolume = &v1alpha1.SourceVolume{PVName: "old", HandleHash: "old"}
	source.Status.Lineage = &v1alpha1.SourceLineage{Lineage: v1alpha1.Lineage{Epoch: "1-xyz", Seq: 5}}
	b := fakeBase(t, source, claim, pv)
	if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	if promoted, err := sourceRunOf(b, source).followPromotion(t.Context()); !promoted || err != nil {
		t.Fatal(promoted, err)
	}
	if s := source.Status; s.Lineage.Epoch != "2-abc" || s.Lineage.Seq != 7 || s.SourceVolume.PVName != "promoted" {
		t.Errorf("lineage %+v, volume %+v", s.Lineage, s.SourceVolume)
	}
}

// A fence counts only as long as the volume is behind it.
func TestFenceOfAnAdoptedVolume(t *testing.T) {
	name := names.FinalSync("ns", "s")
	for claim, kept := range map[string]bool{name: true, "vf-dst-another": false} {
		source := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: v1alpha1.SourceSpec{Source: "data"}}
		source.Status.SourceVolume = &v1alpha1.SourceVolume{PVName: "pv"}
		source.Status.Fence = &v1alpha1.Fence{PVName: "pv", PVCName: "data", Settled: true}
		b := fakeBase(t, source, volumeFor("vault", claim))
		if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
			t.Fatal(err)
		}
		if err := sourceRunOf(b, source).lostToOthers(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (source.Status.Fence != nil) != kept {
			t.Errorf("volume of claim %s: fence %+v", claim, source.Status.Fence)
		}
	}
}

// A volume that goes while its final sync runs takes the mover with it.
func TestVolumeGoneDuringTheFinalSync(t *testing.T) {
	source := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: v1alpha1.SourceSpec{
		Source: "data", FinalSync: &v1alpha1.FinalSyncSpec{ID: "r1"},
	}}
	source.Status.SourceVolume = &v1alpha1.SourceVolume{PVName: "pv"}
	source.Status.FinalSync = &v1alpha1.FinalSyncStatus{ID: "r1", Phase: v1alpha1.ReasonSyncing}
	source.Status.ActiveSync = &v1alpha1.ActiveSync{FinalSyncID: "r1", Stage: v1alpha1.StageMoving, Start: metav1.NowMicro()}
	b := fakeBase(t, source)
	b.Recorder, b.Limiter = events.NewFakeRecorder(9), limiter.New(1)
	b.Limiter.Acquire(client.ObjectKeyFromObject(source))
	if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	run := sourceRunOf(b, source)
	for range 2 {
		if err := run.runFinalSync(t.Context()); trouble(err) != "" {
			t.Fatal(err)
		}
	}
	if source.Status.ActiveSync != nil || source.Status.FinalSync.Phase != v1alpha1.ReasonVolumeGone {
		t.Errorf("active %+v, final sync %+v", source.Status.ActiveSync, source.Status.FinalSync)
	}
	if !b.Limiter.Acquire(client.ObjectKey{Name: "another"}) {
		t.Error("its place is not free")
	}
}

// A final sync can be called off with parameters that are not valid.
func TestCallOffNeedsNoParameters(t *testing.T) {
	source := &v1alpha1.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.SourceSpec{Source: "data", Parameters: map[string]string{"no": "such"}},
	}
	source.Status.FinalSync = &v1alpha1.FinalSyncStatus{ID: "r1", Phase: v1alpha1.ReasonInUse}
	b := fakeBase(t, source)
	if err := b.APIReader.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	if err := sourceRunOf(b, source).steps(t.Context()); trouble(err) != "" {
		t.Fatal(err)
	}
	if source.Status.FinalSync != nil {
		t.Errorf("the final sync is still at %+v", source.Status.FinalSync)
	}
}
