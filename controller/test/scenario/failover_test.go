// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// twoSites gives two worlds in control planes of their own, with the same namespace in both.
func twoSites(t *testing.T) (a, b *world) {
	t.Helper()
	a = newWorld(t)
	b = newWorld(t, func(w *world) { w.site, w.namespace = secondSite(t), a.namespace })
	a.openSecrets()
	b.openSecrets()
	return a, b
}

// receive makes Destination p of this site.
func (w *world) receive(spec v1alpha1.DestinationSpec) {
	w.Helper()
	w.create(&v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}, Spec: spec})
}

// sendTo makes Source p of claim data, which pushes to Destination p of the other site once that has an address.
func (w *world) sendTo(other *world) {
	w.Helper()
	w.eventually(60*time.Second, "the address of the other site", func() bool { return other.destination("p").Status.MethodStatus["address"] != "" })
	key := &corev1.Secret{}
	w.must(other.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.Destination(other.namespace, "p")}, key))
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p-key"},
		Data:       map[string][]byte{"id": key.Data["id"], "psk": key.Data["psk"]},
	}, &v1alpha1.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"},
		Spec: v1alpha1.SourceSpec{Source: "data", Parameters: map[string]string{
			"address": other.destination("p").Status.MethodStatus["address"], "keySecret": "p-key", "copyMethod": "Direct",
		}},
	})
}

// removePVC brings a claim into a state: present, terminating (a foreign finalizer holds it) or gone.
func (w *world) removePVC(name, state string) {
	w.Helper()
	if state == "present" {
		return
	}
	if state == "terminating" {
		pin[corev1.PersistentVolumeClaim](w, name)
	}
	w.must(w.client.Delete(w.ctx, w.pvc(name)))
	if state == "gone" {
		w.eventually(20*time.Second, "the claim's end", func() bool {
			return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.PersistentVolumeClaim{}))
		})
	}
}

func (w *world) sent(name string) int64 {
	w.Helper()
	bytes, err := strconv.ParseInt(w.source(name).Status.MethodStatus["bytesSent"], 10, 64)
	w.must(err)
	return bytes
}

// Site A fails, B takes over; A comes back with its claim present, being deleted or gone, and is re-synced from B without a
// full copy; what A's old Source still sends is refused.
func TestA26A27A50FailoverAndFailback(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"present", "terminating", "gone"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			a, b := twoSites(t)
			data := a.claim("data", "16Mi", corev1.PersistentVolumeFilesystem)
			a.write(filepath.Join(data, "large"), 4<<20)
			b.receive(v1alpha1.DestinationSpec{Parameters: map[string]string{"capacity": "16Mi"}})
			a.sendTo(b)
			a.demand("p", "1")
			b.eventually(30*time.Second, "the image", func() bool { return b.destination("p").Status.LatestImage != nil })
			a.stop() // the site is away

			b.promote(v1alpha1.PromoteSpec{PVCName: "data"})
			b.promotedReason(v1alpha1.ReasonPromoted)
			taken := b.path(b.namespace, "data")
			if !same(data, taken) {
				t.Fatal("the other site does not have the data")
			}
			b.write(filepath.Join(taken, "after-the-failover"), 4096)
			a.write(filepath.Join(data, "stray"), 4096) // written in the last moment, and lost

			a.startController()
			a.ask("p", "2")
			a.eventually(90*time.Second, "StaleEpoch", func() bool {
				return reason(a.source("p").Status.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonStaleEpoch
			})
			uid, pvName := a.pvc("data").UID, a.pvc("data").Spec.VolumeName
			a.removePVC("data", state)
			a.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}})
			b.sendTo(a)
			b.demand("p", "back")
			if a.destination("p").Status.Staging.PVName != pvName {
				t.Errorf("the staging volume is %s, not the old one", a.destination("p").Status.Staging.PVName)
			}
			if !same(taken, a.staging("p")) {
				t.Error("the old site differs from the new one")
			}
			if sent := b.sent("p"); sent > 300_000 {
				t.Errorf("%d bytes were sent, although 8 KiB had changed", sent)
			}

			// Back again, planned: no write is lost.
			b.write(filepath.Join(taken, "last"), 4096)
			a.promote(v1alpha1.PromoteSpec{PVCName: "data", RequireFinalSync: "back"})
			if state == "terminating" {
				a.eventually(30*time.Second, "the old claim to be waited for", func() bool {
					edit(b, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: "back"} })
					return a.destinationReason(v1alpha1.ConditionPromoted) == v1alpha1.ReasonPVCTerminating
				})
				unpin[corev1.PersistentVolumeClaim](a, "data")
			}
			edit(b, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: "back"} })
			a.promotedReason(v1alpha1.ReasonPromoted)
			if !same(taken, a.path(a.namespace, "data")) {
				t.Error("after the failback the old site differs from the new one")
			}
			if state == "present" && a.pvc("data").UID != uid {
				t.Error("the old claim was replaced")
			}
			a.eventually(30*time.Second, "the Source of the old site to keep its volume", func() bool {
				return a.pv(pvName).Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] == "Delete"
			})
			a.bound("data", corev1.PersistentVolumeReclaimRetain)

			// A's Source goes on by itself: as long as B is promoted it tries again, and then B receives as at the beginning.
			a.write(filepath.Join(a.path(a.namespace, "data"), "home-again"), 4096)
			a.eventually(90*time.Second, "a try that fails", func() bool {
				s := a.source("p").Status
				return s.Retry != nil && !s.Retry.Permanent && s.LatestMover.ExitCode == 21
			})
			b.demote()
			edit(b, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = nil })
			a.served("p", "2")
			if !same(a.path(a.namespace, "data"), b.staging("p")) {
				t.Error("the other site is not a replica again")
			}
			if b.pvc("data").Status.Phase != corev1.ClaimLost {
				t.Errorf("at the other site the claim is %s", b.pvc("data").Status.Phase)
			}
		})
	}
}

// The workload goes to and fro several times by the same edits; nobody deletes a claim, and each time it finds what was
// written last. In all that time no claim of a user gets an owner or a finalizer of ours, and no volume of one the policy
// Delete without a claim.
func TestA38RepeatedRelocation(t *testing.T) {
	t.Parallel()
	a, b := twoSites(t)
	defer a.watchVolumes()()
	defer b.watchVolumes()()
	data := a.claim("data", "16Mi", corev1.PersistentVolumeFilesystem)
	a.write(filepath.Join(data, "large"), 2<<20)
	b.receive(v1alpha1.DestinationSpec{Parameters: map[string]string{"capacity": "16Mi", "copyMethod": "Direct"}})
	a.sendTo(b)
	from, to := a, b
	for round := range 4 {
		last := fmt.Sprintf("written-in-round-%d", round)
		from.write(filepath.Join(from.path(from.namespace, "data"), last), 4096)
		id := fmt.Sprintf("round-%d", round)
		edit(from, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: id} })
		to.promote(v1alpha1.PromoteSpec{PVCName: "data", RequireFinalSync: id})
		to.promotedReason(v1alpha1.ReasonPromoted)
		if _, err := os.Stat(filepath.Join(to.path(to.namespace, "data"), last)); err != nil {
			t.Fatalf("round %d: what was written last is missing: %v", round, err)
		}
		to.unmarked(to.pvc("data"))
		if round == 0 {
			a.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}, Parameters: map[string]string{"copyMethod": "Direct"}})
			b.sendTo(a)
		} else {
			from.demote()
			edit(to, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = nil })
		}
		from.eventually(60*time.Second, "the old site to listen", func() bool { return from.destination("p").Status.Phase == v1alpha1.DestinationListening })
		to.demand("p", id)
		if to.sent("p") > 300_000 {
			t.Errorf("round %d: %d bytes were sent, although little had changed", round, to.sent("p"))
		}
		from, to = to, from
	}
}

// The moves are asked for one after the other by another id, and nothing is tidied up in between: the first final sync of
// each site is the last thing that its Source knew.
func TestRelocationByAnotherIDOnly(t *testing.T) {
	t.Parallel()
	a, b := twoSites(t)
	data := a.claim("data", "8Mi", corev1.PersistentVolumeFilesystem)
	a.write(filepath.Join(data, "file"), 100_000)
	b.receive(v1alpha1.DestinationSpec{Parameters: map[string]string{"capacity": "8Mi"}})
	a.sendTo(b)
	from, to := a, b
	for round := range 3 {
		last, id := fmt.Sprintf("written-in-round-%d", round), fmt.Sprintf("move-%d", round)
		from.write(filepath.Join(from.path(from.namespace, "data"), last), 4096)
		edit(from, "p", func(s *v1alpha1.Source) { s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: id} })
		to.promote(v1alpha1.PromoteSpec{PVCName: "data", RequireFinalSync: id})
		to.promotedReason(v1alpha1.ReasonPromoted)
		if _, err := os.Stat(filepath.Join(to.path(to.namespace, "data"), last)); err != nil {
			t.Fatalf("round %d: what was written last is missing: %v", round, err)
		}
		if round == 0 {
			a.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "data"}})
			b.sendTo(a)
		} else {
			from.demote()
		}
		from.eventually(60*time.Second, "the old site to listen", func() bool { return from.destination("p").Status.Phase == v1alpha1.DestinationListening })
		from, to = to, from
	}
}

// The reverse Source waits, without failing, until the promotion makes its claim; then it starts by itself.
func TestA21DormantReverse(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	clock := clocktesting.NewFakePassiveClock(begin)
	w := newWorld(t, func(w *world) { w.clock = clock })
	w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.addDestination("home", map[string]string{"capacity": "8Mi"})
	w.addSource("home", "db", map[string]string{"copyMethod": "Direct"})
	edit(w, "home", func(s *v1alpha1.Source) {
		s.Spec.Trigger.Schedule, s.Spec.Trigger.InitialSync = "* * * * *", v1alpha1.InitialSyncImmediate
	})
	for minute := range 10 {
		clock.SetTime(begin.Add(time.Duration(minute) * time.Minute))
		edit(w, "home", func(s *v1alpha1.Source) { s.Spec.Trigger.TimeZone = []string{"UTC", "Etc/UTC"}[minute%2] })
		w.eventually(20*time.Second, "dormancy", func() bool {
			s := w.source("home")
			return s.Status.ObservedGeneration == s.Generation && s.Status.Phase == v1alpha1.SourcePending &&
				reason(s.Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSourcePVCNotFound
		})
		s := w.source("home").Status
		if out, _ := w.metric("volferry_out_of_sync", "home"); s.Retry != nil || s.ActiveSync != nil || out != 0 {
			t.Fatalf("after %d minutes retry is %+v, the active sync %+v, volferry_out_of_sync %v", minute, s.Retry, s.ActiveSync, out)
		}
		if n, counted := w.metric("volferry_failures_total", "home"); counted {
			t.Fatalf("after %d minutes volferry_failures_total is %v", minute, n)
		}
	}
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.eventually(90*time.Second, "the reverse sync", func() bool { return w.destination("home").Status.LatestImage != nil })
	lineage := w.source("home").Status.Lineage
	if promoted := w.destination("p").Status.Lineage; lineage.Epoch != promoted.Epoch || lineage.Seq != promoted.Seq+1 {
		t.Errorf("the reverse Source is at %+v, the promotion began %+v", lineage, promoted)
	}
	if !same(w.path(w.namespace, "db"), w.staging("home")) {
		t.Error("the reverse replica differs")
	}
}

// A Destination that has made a staging volume already, and received nothing, adopts all the same.
func TestAdoptLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem)
	pvName := w.pvc("db").Spec.VolumeName
	w.receive(v1alpha1.DestinationSpec{Parameters: map[string]string{"capacity": "8Mi"}})
	w.eventually(60*time.Second, "the first listener", func() bool { return w.destination("p").Status.Phase == v1alpha1.DestinationListening })
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Adopt = &v1alpha1.AdoptSpec{PVCName: "db"} })
	w.listensOn(pvName)
}

// Nothing is left to adopt: that is said, and nothing is made in its place.
func TestAdoptNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "never-was"}})
	w.eventually(30*time.Second, "StagingMissing", func() bool {
		return w.destinationReason(v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonStagingMissing
	})
	err := w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, "p")}, &corev1.PersistentVolumeClaim{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a staging claim: %v", err)
	}
}

// A claim can name any volume of the cluster; adopting it does not get at one that belongs to another namespace, nor at
// one that another Destination has.
func TestAdoptForeignVolume(t *testing.T) {
	t.Parallel()
	victim, thief := newWorld(t), newWorld(t)
	victim.claim("db", "8Mi", corev1.PersistentVolumeFilesystem)
	pvName := victim.pvc("db").Spec.VolumeName
	claim := victim.pvc("db").DeepCopy()
	claim.ObjectMeta = metav1.ObjectMeta{Namespace: thief.namespace, Name: "db"}
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	thief.create(claim)
	thief.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}})
	refused := func(w *world, name string) {
		w.eventually(30*time.Second, "the refusal", func() bool {
			return reason(w.destination(name).Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonInUse
		})
	}
	refused(thief, "p")
	victim.bound("db", corev1.PersistentVolumeReclaimDelete)
	victim.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}})
	victim.listensOn(pvName)
	victim.create(&v1alpha1.Destination{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "second"},
		Spec:       v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}},
	})
	refused(victim, "second")
	victim.never(3*time.Second, "another owner", func() bool {
		return victim.pv(pvName).Spec.ClaimRef.Name != names.Destination(victim.namespace, "p")
	})
}

// A volume that was a user's once is never deleted with a Destination: an adopted one stays, and one that is just being
// taken back goes to its claim.
func TestUsersVolumesStay(t *testing.T) {
	t.Parallel()
	gone := func(w *world) {
		w.must(w.client.Delete(w.ctx, w.destination("p")))
		w.eventually(60*time.Second, "the Destination's end", func() bool {
			return apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "p"}, &v1alpha1.Destination{}))
		})
		if left := w.inVault(); len(left) > 0 {
			w.Errorf("the vault still has %v", left)
		}
	}
	t.Run("adopted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.write(filepath.Join(w.claim("db", "8Mi", corev1.PersistentVolumeFilesystem), "precious"), 1000)
		pvName := w.pvc("db").Spec.VolumeName
		w.receive(v1alpha1.DestinationSpec{Adopt: &v1alpha1.AdoptSpec{PVCName: "db"}})
		w.listensOn(pvName)
		gone(w)
		w.never(3*time.Second, "the volume's end", func() bool {
			_, err := os.Stat(filepath.Join(w.volumeOf("db"), "precious"))
			return err != nil || w.pv(pvName).Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
		})
	})
	t.Run("demoting", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(w *world) { w.options.FenceSettle = time.Minute })
		w.replica("Direct", corev1.PersistentVolumeFilesystem)
		w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
		w.promotedReason(v1alpha1.ReasonPromoted)
		w.demote()
		w.eventually(30*time.Second, "the fence", func() bool { return w.pvc("db").Status.Phase == corev1.ClaimLost })
		gone(w)
		w.eventually(20*time.Second, "the claim to be bound again", func() bool { return w.pvc("db").Status.Phase == corev1.ClaimBound })
		w.bound("db", corev1.PersistentVolumeReclaimDelete)
	})
}
