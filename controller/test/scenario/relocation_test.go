// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
)

// A promotion that waits for a final sync takes no other one for it.
func TestAnotherFinalSyncIsNotTheOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	w.promote(v1alpha1.PromoteSpec{PVCName: "db", RequireFinalSync: "r1"})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r2"})
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.eventually(30*time.Second, "final sync r2 to be taken in", func() bool {
		received := w.destination("p").Status.LastReceived
		return received != nil && received.FinalSyncID == "r2"
	})
	w.never(2*time.Second, "a promotion", func() bool {
		return w.destinationReason(v1alpha1.ConditionPromoted) != v1alpha1.ReasonWaitingForFinalSync
	})
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	if !same(data, w.path(w.namespace, "db")) {
		t.Error("the promoted volume differs from the source")
	}
}

// A device is relocated with its last write, and back comes only what was written meanwhile.
func TestDeviceThereAndBack(t *testing.T) {
	t.Parallel()
	if err := loopDevicesWork(); err != nil {
		t.Skip("no loop devices here: ", err)
	}
	w := newWorld(t)
	w.openSecrets()
	data := w.replica("Snapshot", corev1.PersistentVolumeBlock)
	pvName := w.pvc("data").Spec.VolumeName
	w.fill(data, 100_000, 5000)
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.promote(v1alpha1.PromoteSpec{PVCName: "db", RequireFinalSync: "r1"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.finalSynced(v1alpha1.ReasonCompleted)
	promoted := w.path(w.namespace, "db")
	if !same(data, promoted) {
		t.Error("the promoted device differs from the source")
	}
	w.create(&v1alpha1.Destination{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "home"},
		Spec:       v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}, Parameters: map[string]string{"volumeMode": "Block"}},
	})
	w.eventually(60*time.Second, "the adoption", func() bool {
		home := w.destination("home").Status
		return home.Phase == v1alpha1.DestinationListening && home.Staging.PVName == pvName
	})
	w.fill(promoted, 200_000, 4096)
	w.addSource("home", "db", map[string]string{"copyMethod": "Direct"})
	w.demand("home", "1")
	if !same(promoted, w.staging("home")) {
		t.Error("the adopted device differs from the promoted one")
	}
	if sent := w.sent("home"); sent > 300_000 {
		t.Errorf("%d bytes were sent, although 4 KiB had changed", sent)
	}
}

// No schedule runs beside a final sync; it resumes once that is called off.
func TestScheduleResumesAfterACallOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "*/2 * * * * *" })
	w.pod("db-0", "data")
	defer w.removePods()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonInUse)
	seq := w.source("p").Status.Lineage.Seq
	w.never(5*time.Second, "a scheduled sync", func() bool {
		s := w.source("p").Status
		return s.Lineage.Seq != seq || s.ActiveSync != nil || s.NextSyncTime != nil
	})
	w.callOff()
	w.eventually(30*time.Second, "a scheduled sync", func() bool { return w.source("p").Status.Lineage.Seq > seq })
	if !same(data, w.staging("p")) {
		t.Error("the peer does not have the last write")
	}
}
