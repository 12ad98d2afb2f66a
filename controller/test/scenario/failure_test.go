// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/test/nodeless"
)

// failSources lets the source movers of this world end with an exit code.
func (w *world) failSources(code int32) {
	child := names.Source(w.namespace, "p")
	w.inject(func(pod *corev1.Pod) nodeless.Injection {
		return nodeless.Injection{Skip: pod.Labels[v1alpha1.LabelChild] == child, ExitCode: code}
	})
}

// events of a reason about a resource.
func (w *world) events(reason string) int {
	w.Helper()
	list := &eventsv1.EventList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)))
	count := 0
	for _, event := range list.Items {
		if event.Reason == reason {
			count++
			if event.Series != nil {
				count += int(event.Series.Count) - 1
			}
		}
	}
	return count
}

// copies counts what a Source has made of its volume.
func (w *world) copies() int {
	w.Helper()
	mine := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	snapshots, claims := &snapshotv1.VolumeSnapshotList{}, &corev1.PersistentVolumeClaimList{}
	w.must(w.client.List(w.ctx, snapshots, client.InNamespace(w.namespace), mine))
	w.must(w.client.List(w.ctx, claims, client.InNamespace(w.namespace), mine))
	return max(len(snapshots.Items), len(claims.Items))
}

// Transient failures are tried again with growing pauses and one copy; afterwards the request is served and the streak is
// over. One event tells of a streak.
func TestTransientFailuresAreRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "file"), 1000)
	w.pair("p", "data", map[string]string{"retries": "1"}, map[string]string{"copyMethod": "Direct", "capacity": "8Mi"})
	w.failSources(13)
	w.ask("p", "a")
	most := 0
	w.eventually(180*time.Second, "six failures", func() bool {
		most = max(most, w.copies())
		retry := w.source("p").Status.Retry
		return retry != nil && retry.Failures >= 6
	})
	if most > 1 {
		t.Errorf("%d copies of the volume at once, want at most 1", most)
	}
	s := w.source("p").Status
	if s.Retry.Permanent || s.LastSyncTime != nil || s.LatestMover.ExitCode != 13 {
		t.Errorf("retry %+v, last sync %v, mover %+v", s.Retry, s.LastSyncTime, s.LatestMover)
	}
	if n := w.events("TransferFailed"); n != 1 {
		t.Errorf("%d events TransferFailed in one streak, want 1", n)
	}
	if out, ok := w.metric("volferry_out_of_sync", "p"); !ok || out != 1 {
		t.Errorf("volferry_out_of_sync is %v (%v), want 1", out, ok)
	}
	if n, ok := w.metric("volferry_failures_total", "p"); !ok || n < 6 {
		t.Errorf("volferry_failures_total is %v (%v), want at least 6", n, ok)
	}
	w.inject(nil)
	w.served("p", "a")
	if s := w.source("p").Status; s.Retry != nil || s.Lineage.Seq != 1 {
		t.Errorf("after the success retry is %+v and seq %d", s.Retry, s.Lineage.Seq)
	}
	w.eventually(10*time.Second, "the alert to clear", func() bool { out, _ := w.metric("volferry_out_of_sync", "p"); return out == 0 })
	w.eventually(20*time.Second, "the copies' end", func() bool { return w.copies() == 0 })
	// All tries of one transfer bear the same number and the same id.
	attempts := map[string]bool{}
	for _, run := range w.sourceRuns("p") {
		attempts[run.Environment["VOLFERRY_SEQ"]+" "+run.Environment["VOLFERRY_ATTEMPT"]] = true
	}
	if len(attempts) != 1 {
		t.Errorf("the tries of one transfer were %v", attempts)
	}
}

// A permanent failure stops: no retry, no tick; a condition, an event and a metric say so. A new request starts anew.
func TestPermanentFailuresStop(t *testing.T) {
	t.Parallel()
	for _, code := range []int32{2, 11, 12, 20, 23, 30} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.small()
			w.failSources(code)
			edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule, s.Spec.Trigger.OnDemand = "* * * * * *", "a" })
			w.eventually(40*time.Second, "the stop", func() bool {
				s := w.source("p").Status
				return s.Retry != nil && s.Retry.Permanent && s.ActiveSync == nil && s.Phase == v1alpha1.SourceError
			})
			w.never(3*time.Second, "a retry", func() bool { return len(w.sourceRuns("p")) != 1 })
			s := w.source("p").Status
			if got := reason(s.Conditions, v1alpha1.ConditionSynchronizing); got != v1alpha1.ReasonError {
				t.Errorf("Synchronizing is %s", got)
			}
			if value, ok := w.metric("volferry_permanently_failed", "p"); !ok || value != 1 {
				t.Errorf("volferry_permanently_failed is %v (%v), want 1", value, ok)
			}
			if n := w.events("TransferFailed"); n != 1 {
				t.Errorf("%d events TransferFailed, want 1", n)
			}
			w.inject(nil)
			edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "" })
			w.demand("p", "b")
			w.eventually(10*time.Second, "the metric to clear", func() bool { value, _ := w.metric("volferry_permanently_failed", "p"); return value == 0 })
		})
	}
}

// The real program's own errors reach the status: a wrong key is permanent, a listener that is away is not.
func TestRealFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	right := w.changeKey([]byte("00112233445566778899aabbccddeeff"))
	w.ask("p", "a")
	w.eventually(60*time.Second, "the refusal of a wrong key", func() bool {
		s := w.source("p").Status
		return s.Retry != nil && s.Retry.Permanent && s.LatestMover.ExitCode == 11
	})
	w.changeKey(right)
	w.demand("p", "b")
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Paused = true })
	w.eventually(30*time.Second, "the listener to go", func() bool {
		return reason(w.destination("p").Status.Conditions, v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonPaused
	})
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Parameters["connectTimeout"] = "1s"; s.Spec.Trigger.OnDemand = "c" })
	w.eventually(60*time.Second, "a failure to connect", func() bool {
		s := w.source("p").Status
		return s.Retry != nil && s.Retry.Failures > 0 && !s.Retry.Permanent && s.LatestMover.ExitCode == 10
	})
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Paused = false })
	w.served("p", "c")
}

// At most so many Sources sync at once, whatever is due, and all get their turn.
func TestConcurrencyCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.options.MaxConcurrentSyncs = 2 })
	const sources = 5
	w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "file"), 1000)
	for i := range sources {
		w.pair(fmt.Sprintf("p%d", i), "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"copyMethod": "Direct", "capacity": "8Mi"})
	}
	w.inject(slowly(time.Second))
	for i := range sources {
		w.ask(fmt.Sprintf("p%d", i), "a")
	}
	most := 0
	w.eventually(120*time.Second, "all to be served", func() bool {
		list := &v1alpha1.SourceList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)))
		active, served := 0, 0
		for _, s := range list.Items {
			if s.Status.ActiveSync != nil {
				active++
			}
			if s.Status.LastOnDemand == "a" {
				served++
			}
		}
		most = max(most, active)
		return served == sources
	})
	if most != 2 {
		t.Errorf("%d syncs at once, want 2", most)
	}
}

// While a mover runs the status shows how far it is.
func TestLiveProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(filepath.Join(w.claim("data", "64Mi", corev1.PersistentVolumeFilesystem), "file"), 32<<20)
	w.pair("p", "data", map[string]string{"copyMethod": "Direct", "bandwidthLimit": "2Mi"}, map[string]string{"copyMethod": "Direct"})
	w.ask("p", "a")
	var seen map[string]string
	w.eventually(60*time.Second, "the progress", func() bool {
		seen = w.source("p").Status.MethodStatus
		return seen["progressBytes"] != "" && seen["progressPercent"] != "" && seen["progressPercent"] != "0" && seen["progressETA"] != ""
	})
	t.Logf("seen: %v", seen)
	edit(w, "p", func(s *v1alpha1.Source) { delete(s.Spec.Parameters, "bandwidthLimit") })
	w.served("p", "a")
	if after := w.source("p").Status.MethodStatus; after["progressPercent"] != "" || after["bytesSent"] == "" {
		t.Errorf("after the end the status shows %v", after)
	}
}

// Another volume under the claim's name is not replicated before somebody says that this is meant.
func TestReplacedVolumeNeedsConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.demand("p", "a")
	w.must(w.client.Delete(w.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data"}}))
	w.eventually(20*time.Second, "dormancy", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSourcePVCNotFound
	})
	w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem)
	w.ask("p", "b")
	w.eventually(20*time.Second, "the refusal", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonSourceVolumeChanged
	})
	w.never(2*time.Second, "a sync", func() bool { return len(w.sourceRuns("p")) != 1 })
	token := tokenIn(conditionsText(w.source("p").Status.Conditions))
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Acknowledge = []string{"0123456789ab"} })
	w.never(2*time.Second, "a sync by a wrong token", func() bool { return len(w.sourceRuns("p")) != 1 })
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Acknowledge = []string{token} })
	// The Destination has its own memory, and a token of its own.
	w.eventually(60*time.Second, "the Destination's refusal", func() bool {
		s := w.source("p").Status
		return reason(s.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonPeerIdentityMismatch && s.ActiveSync == nil
	})
	second := tokenIn(conditionsText(w.source("p").Status.Conditions))
	w.refusedBy(v1alpha1.ReasonPeerIdentityMismatch, second)
	if second == token {
		t.Error("two different conflicts have the same token")
	}
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Acknowledge = []string{token, second} })
	w.served("p", "b")
}

// A Source that begins anew is behind its Destination, and says so with a token that permits it.
func TestSourceBehindItsPeer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.demand("p", "a")
	w.demand("p", "b")
	old := w.source("p")
	w.must(w.client.Delete(w.ctx, old))
	w.eventually(20*time.Second, "the Source's end", func() bool { return w.count(&v1alpha1.Source{}) == 0 })
	again := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}, Spec: old.Spec}
	again.Spec.Trigger.OnDemand = "c"
	w.create(again)
	w.eventually(60*time.Second, "the refusal", func() bool {
		s := w.source("p").Status
		return reason(s.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonSourceBehindPeer && s.ActiveSync == nil
	})
	token := tokenIn(conditionsText(w.source("p").Status.Conditions))
	w.refusedBy(v1alpha1.ReasonSourceBehindPeer, token)
	if n := w.events("IdentityMismatch"); n != 2 {
		t.Errorf("%d events IdentityMismatch, want one at each end", n)
	}
	if got := w.destination("p").Status.LastReceived.Seq; got != 2 {
		t.Errorf("the destination has received transfer %d", got)
	}
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Acknowledge = []string{token} })
	w.served("p", "c")
	if got := reason(w.source("p").Status.Conditions, v1alpha1.ConditionPeerVerified); got != v1alpha1.ReasonVerified {
		t.Errorf("PeerVerified is %s", got)
	}
	w.eventually(20*time.Second, "the Destination to be content", func() bool {
		return w.destinationReason(v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonVerified
	})
}

// refusedBy waits until Destination p says that it refused its Source, with the Source's own words.
func (w *world) refusedBy(reason, token string) {
	w.Helper()
	w.eventually(60*time.Second, "the refusal at the Destination", func() bool {
		conditions := w.destination("p").Status.Conditions
		return w.destinationReason(v1alpha1.ConditionPeerVerified) == reason && tokenIn(conditionsText(conditions)) == token
	})
}

// A transfer that has completed is taken in whatever is edited before the controller has looked at it.
func TestReceivedTransferIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.eventually(30*time.Second, "the listener", func() bool {
		return reason(w.destination("p").Status.Conditions, v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonListening
	})
	w.ask("p", "a")
	// The controller goes once the mover runs, and comes back when the transfer is over and the Destination edited.
	w.eventually(30*time.Second, "the mover", func() bool { return len(w.sourceRuns("p")) == 1 })
	w.stop()
	w.eventually(60*time.Second, "the end of the transfer", func() bool {
		runs := w.destinationRuns("p")
		return len(runs) > 0 && !runs[0].Running()
	})
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.Paused = true })
	w.startController()
	w.eventually(60*time.Second, "the transfer to be taken in", func() bool {
		d := w.destination("p").Status
		return d.LastReceived != nil && d.LatestImage != nil && d.LastReceived.Seq == 1 &&
			reason(d.Conditions, v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonPaused
	})
	w.served("p", "a")
}

// A Job deleted by hand is replaced only once its pod has ended.
func TestJobDeletedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(filepath.Join(w.claim("data", "64Mi", corev1.PersistentVolumeFilesystem), "file"), 16<<20)
	w.pair("p", "data", map[string]string{"copyMethod": "Direct", "bandwidthLimit": "4Mi"}, map[string]string{"copyMethod": "Direct"})
	w.ask("p", "a")
	w.eventually(40*time.Second, "the mover", func() bool { return len(w.sourceRuns("p")) == 1 })
	for _, job := range []client.ObjectKey{
		{Namespace: w.namespace, Name: names.Source(w.namespace, "p")}, {Namespace: vault, Name: names.Destination(w.namespace, "p")},
	} {
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}},
			client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	edit(w, "p", func(s *v1alpha1.Source) { delete(s.Spec.Parameters, "bandwidthLimit") })
	w.served("p", "a")
	for _, overlap := range nodeless.Overlaps(append(w.sourceRuns("p"), w.destinationRuns("p")...), nodeless.ByVolume) {
		t.Errorf("two movers at once on volume %s", overlap.First.Volume)
	}
}

// Whoever deletes a Destination but keeps its volume can make it again and delete it for good.
func TestDestinationTakesItsVolumeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.demand("p", "a")
	edit(w, "p", func(d *v1alpha1.Destination) { d.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
	old := w.destination("p")
	before := old.Status.Staging.PVName
	w.must(w.client.Delete(w.ctx, old))
	w.eventually(30*time.Second, "its end", func() bool { return w.count(&v1alpha1.Destination{}) == 0 })
	again := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}, Spec: old.Spec}
	again.Spec.DeletionPolicy = ""
	w.create(again)
	w.eventually(30*time.Second, "the volume to be taken over", func() bool {
		staging := w.destination("p").Status.Staging
		return staging != nil && staging.PVName == before
	})
	w.deleteAll()
}

// More failures than a list of requests may hold do not stop a Source.
func TestManyFailedTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.options.RetryDelay, w.options.RetryDelayMax = time.Millisecond, time.Millisecond })
	w.small()
	w.failSources(13)
	edit(w, "p", func(s *v1alpha1.Source) {
		s.Spec.Trigger.Schedule, s.Spec.Parameters["retries"] = "* * * * * *", "0"
	})
	w.eventually(120*time.Second, "ten failures", func() bool {
		retry := w.source("p").Status.Retry
		return retry != nil && retry.Failures >= 10
	})
	w.inject(nil)
	w.eventually(60*time.Second, "a success", func() bool { return w.source("p").Status.LastSyncTime != nil })
}
