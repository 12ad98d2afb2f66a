// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
)

// refused waits until Source name is refused for a reason and at rest, and gives the token that it was told.
func (w *world) refused(name, want string) (token string) {
	w.Helper()
	w.eventually(60*time.Second, want, func() bool {
		s := w.source(name).Status
		return reason(s.Conditions, v1alpha1.ConditionPeerVerified) == want && s.ActiveSync == nil
	})
	return tokenIn(conditionsText(w.source(name).Status.Conditions))
}

func (w *world) acknowledge(name, token string) {
	w.Helper()
	edit(w, name, func(s *v1alpha1.Source) { s.Spec.Acknowledge = []string{token} })
}

// A promotion that was a drill is undone: the other site receives again, what was written there goes, and what the
// application has written at home since stays. The token is the one that the Source was told during the drill.
func TestPromotionIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
	w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	w.write(filepath.Join(w.path(w.namespace, "db"), "of-the-drill"), 1000)
	pvName := w.pvc("db").Spec.VolumeName
	w.write(filepath.Join(data, "written-at-home"), 1000)
	w.ask("p", "2")
	token := w.refused("p", v1alpha1.ReasonStaleEpoch)
	w.demote()
	w.listensOn(pvName)
	before := w.copyOf(data, corev1.PersistentVolumeFilesystem)
	w.acknowledge("p", token)
	w.served("p", "2")
	if !same(before, data) {
		t.Error("the data at home have changed")
	}
	if !same(data, w.staging("p")) {
		t.Error("the other site is not a replica again")
	}
	w.eventually(20*time.Second, "PeerVerified", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonVerified
	})
	if sent := w.sent("p"); sent > 100_000 {
		t.Errorf("%d bytes were sent, although little had changed", sent)
	}
}

// Two replicas were promoted, each on its own: neither is written over by the other, until one of them receives again and
// the token is acknowledged at the one that counts.
func TestPromotedSeparately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(fileOf(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), corev1.PersistentVolumeFilesystem), 0, 300_000)
	for _, name := range []string{"p", "q"} {
		w.pair(name, "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"capacity": "8Mi"})
		w.ask(name, "1")
	}
	w.served("p", "1")
	w.served("q", "1")
	promoteAnother := func(spec *v1alpha1.PromoteSpec) {
		edit(w, "q", func(d *v1alpha1.Destination) { d.Spec.Promote = spec })
	}
	phase := func(want v1alpha1.DestinationPhase) {
		w.eventually(60*time.Second, string(want), func() bool { return w.destination("q").Status.Phase == want })
	}
	w.promote(v1alpha1.PromoteSpec{PVCName: "one"})
	promoteAnother(&v1alpha1.PromoteSpec{PVCName: "other"})
	w.promotedReason(v1alpha1.ReasonPromoted)
	phase(v1alpha1.DestinationPrimary)
	one, other := w.path(w.namespace, "one"), w.path(w.namespace, "other")
	w.write(filepath.Join(one, "of-the-one"), 1000)
	w.write(filepath.Join(other, "of-the-other"), 1000)
	before := w.copyOf(other, corev1.PersistentVolumeFilesystem)

	status := w.destination("q").Status.MethodStatus
	w.create(&v1alpha1.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "one"},
		Spec: v1alpha1.SourceSpec{
			Source: "one", Trigger: v1alpha1.SourceTrigger{OnDemand: "1"},
			Parameters: map[string]string{"address": status["address"], "port": status["port"], "keySecret": "q-key", "copyMethod": "Direct"},
		},
	})
	token := w.refused("one", v1alpha1.ReasonPeerIdentityMismatch)
	if text := conditionsText(w.source("one").Status.Conditions); !strings.Contains(text, "promoted separately") {
		t.Errorf("that both were promoted is not told:\n%s", text)
	}
	if !same(before, other) {
		t.Error("the other promoted volume was written")
	}
	promoteAnother(nil)
	phase(v1alpha1.DestinationListening)
	w.acknowledge("one", token)
	w.served("one", "1")
	if !same(one, w.staging("q")) {
		t.Error("the other one is not a replica of the one that counts")
	}
}

// The claim of what was promoted is gone, or being deleted: its volume receives again all the same.
func TestDemotionWithoutItsClaim(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"gone", "terminating"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem)
			w.promote(v1alpha1.PromoteSpec{PVCName: "db", ReclaimPolicy: corev1.PersistentVolumeReclaimRetain})
			w.promotedReason(v1alpha1.ReasonPromoted)
			pvName := w.pvc("db").Spec.VolumeName
			w.write(filepath.Join(w.path(w.namespace, "db"), "of-the-application"), 1000)
			w.removePVC("db", state)
			if state == "terminating" {
				defer unpin[corev1.PersistentVolumeClaim](w, "db")
			}
			w.demote()
			w.listensOn(pvName)
			if _, err := os.Stat(filepath.Join(w.staging("p"), "of-the-application")); err != nil {
				t.Error("what the application wrote is gone before anything was received: ", err)
			}
			w.ask("p", "2")
			w.acknowledge("p", w.refused("p", v1alpha1.ReasonStaleEpoch))
			w.served("p", "2")
			if !same(data, w.staging("p")) {
				t.Error("it is not a replica again")
			}
		})
	}
}
