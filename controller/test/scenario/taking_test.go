// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"volferry.io/controller/api/v1alpha1"
)

// A live workload has made a new claim and runs on it: the volume that the Source knows is synced all the same, and the new
// one is left alone.
func TestFinalSyncBesideALiveSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.relocatable()
	old := w.pvc("data").Spec.VolumeName
	fresh := w.replaceClaim("data")
	w.pod("db-0", "data")
	defer w.removePods()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonCompleted)
	w.eventually(20*time.Second, "the last state at the peer", func() bool { return same(data, w.staging("p")) })
	if got := w.source("p").Status.SourceVolume.PVName; got != old {
		t.Errorf("volume %s was synced, not %s", got, old)
	}
	if claim := w.pvc("data"); claim.UID != fresh.UID || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the new claim is %s", claim.Status.Phase)
	}
	w.eventually(10*time.Second, "an event that names both", func() bool {
		return w.noted("SourcePVCReplaced", fresh.Spec.VolumeName+", which is left alone; volume "+old)
	})
}

// The claim is replaced only while its volume is being sent.
func TestClaimReplacedWhileFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	w.inject(slowly(8 * time.Second))
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.finalSynced(v1alpha1.ReasonSyncing)
	w.replaceClaim("data")
	w.eventually(20*time.Second, "an event", func() bool { return w.events("SourcePVCReplaced") == 1 })
	w.finalSynced(v1alpha1.ReasonCompleted)
}

// replaceClaim deletes a claim and makes another of that name, which gets another volume.
func (w *world) replaceClaim(name string) *corev1.PersistentVolumeClaim {
	w.Helper()
	w.deleteClaim(name)
	w.claim(name, "8Mi", corev1.PersistentVolumeFilesystem)
	return w.pvc(name)
}

// A Destination that adopts is deleted and made again, as GitOps does: it adopts the same volume again.
func TestAdoptedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem)
	pvName := w.pvc("db").Spec.VolumeName
	adopt := v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}}
	w.receive(adopt)
	w.listensOn(pvName)
	w.must(w.client.Delete(w.ctx, w.destination("p")))
	w.eventually(60*time.Second, "the Destination's end", func() bool { return w.count(&v1alpha1.Destination{}) == 0 })
	w.receive(adopt)
	w.listensOn(pvName)
}

// Somebody deletes the vault's claim while the fence settles.
func TestVaultClaimVanishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.options.FenceSettle = 6 * time.Second })
	w.relocatable()
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.eventually(30*time.Second, "the fence", func() bool {
		claim := w.finalClaim()
		return claim != nil && claim.Status.Phase == corev1.ClaimBound
	})
	w.must(w.client.Delete(w.ctx, w.finalClaim()))
	w.finalSynced(v1alpha1.ReasonCompleted)
}

// A drill: a promotion, its end, and the old primary goes on. The next promotion outranks both, so that the reverse Source
// follows it.
func TestPromotionAfterADrill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica("Snapshot", corev1.PersistentVolumeFilesystem, "keepImages", "4")
	first := w.destination("p").Status.LatestImage.Name
	w.addDestination("home", map[string]string{"capacity": "8Mi"})
	w.addSource("home", "db", map[string]string{"copyMethod": "Direct"})
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.demand("home", "1")
	w.demote()
	w.listensOn(w.pvc("db").Spec.VolumeName)
	w.ask("p", "2")
	w.acknowledge("p", w.refused("p", v1alpha1.ReasonStaleEpoch))
	w.served("p", "2")
	w.eventually(30*time.Second, "the image", func() bool { return w.destination("p").Status.LatestImage.Kind == "VolumeSnapshot" })
	w.promote(v1alpha1.PromoteSpec{PVCName: "db", Image: first})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.demand("home", "2")
	if got := w.source("home").Status.Lineage.Epoch; got != w.destination("p").Status.Lineage.Epoch || got[0] != '2' {
		t.Errorf("the reverse Source is of epoch %s, the promotion of %s", got, w.destination("p").Status.Lineage.Epoch)
	}
}

// From the moment a promotion is on record no Source gets in, so a clean volume stays clean.
func TestNobodyGetsInDuringAPromotion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.replica("Direct", corev1.PersistentVolumeFilesystem)
	w.fill(fileOf(data, corev1.PersistentVolumeFilesystem), 0, 2<<20)
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Parameters["bandwidthLimit"] = "500Ki" })
	w.eventually(30*time.Second, "the listener", func() bool {
		return w.destinationReason(v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonListening
	})
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.eventually(10*time.Second, "the promotion to be on record", func() bool { return w.destination("p").Status.Promotion != nil })
	w.ask("p", "2")
	w.promotedReason(v1alpha1.ReasonPromoted)
}

// An image that the user names is kept, however many come while the promotion waits.
func TestNamedImageIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relocatable()
	first := w.destination("p").Status.LatestImage.Name
	w.promote(v1alpha1.PromoteSpec{PVCName: "db", Image: first, RequireFinalSync: "r1"})
	w.promotedReason(v1alpha1.ReasonWaitingForFinalSync)
	w.demand("p", "2")
	w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	if got := w.destination("p").Status.Promotion.Image; got != first {
		t.Errorf("image %s was promoted, not %s", got, first)
	}
}
