// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/test/nodeless"
)

// small makes a pair that syncs a small volume, without copies, as fast as may be.
func (w *world) small() {
	w.Helper()
	w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "file"), 1000)
	w.pair("p", "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"copyMethod": "Direct", "capacity": "8Mi"})
}

func TestA02EveryTenSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	begin := time.Now()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "*/10 * * * * *" })
	time.Sleep(35 * time.Second)
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Paused = true })
	end := time.Now()
	w.eventually(30*time.Second, "the end of the last sync", func() bool { return w.source("p").Status.ActiveSync == nil })
	runs := w.sourceRuns("p")
	if len(runs) < 3 || len(runs) > 4 {
		t.Errorf("%d movers ran in %v, want 3 or 4", len(runs), end.Sub(begin))
	}
	for _, overlap := range nodeless.Overlaps(runs, nodeless.ByVolume) {
		t.Errorf("two movers at once: %v and %v", overlap.First.Start, overlap.Second.Start)
	}
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "*/5 * * * *" })
	w.eventually(10*time.Second, "a tick at second 0", func() bool {
		next := w.source("p").Status.NextSyncTime
		return next != nil && next.Second() == 0 && next.Minute()%5 == 0
	})
}

func TestA04OnDemandBesideASchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "0 0 1 1 *" })
	w.eventually(10*time.Second, "the next tick", func() bool { return w.source("p").Status.NextSyncTime != nil })
	next := w.source("p").Status.NextSyncTime
	w.demand("p", "a")
	if got := w.source("p").Status.NextSyncTime; !got.Equal(next) {
		t.Errorf("the next tick became %v, was %v", got, next)
	}
	w.never(3*time.Second, "another sync for the same request", func() bool { return len(w.sourceRuns("p")) != 1 })
	// Requests that arrive during a sync yield one more, not two.
	w.inject(slowly(3 * time.Second))
	w.ask("p", "b")
	w.eventually(20*time.Second, "the sync b to begin", func() bool { return w.source("p").Status.ActiveSync != nil })
	w.ask("p", "c")
	w.ask("p", "d")
	w.served("p", "d")
	if n := len(w.sourceRuns("p")); n != 3 {
		t.Errorf("%d movers ran in all, want 3: a, b, and one for c and d", n)
	}
}

func TestA06Webhook(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) { w.options.WebhookListener = listener })
	w.small()
	token := "a token of more than sixteen bytes"
	w.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hook"}, StringData: map[string]string{"token": token}},
		w.secretReader("hook"),
	)
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Webhook = &v1alpha1.WebhookTrigger{TokenSecret: "hook"} })
	w.eventually(10*time.Second, "readiness", func() bool {
		return reason(w.source("p").Status.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonReady
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // a certificate of its own
	post := func(source, token string) (int, string) {
		request, err := http.NewRequestWithContext(w.ctx, http.MethodPost,
			"https://"+listener.Addr().String()+"/v1/namespaces/"+w.namespace+"/sources/"+source+"/sync", nil)
		w.must(err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		w.must(err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		w.must(err)
		return response.StatusCode, string(bytes.TrimSpace(body))
	}
	wrongCode, wrongBody := post("p", "a wrong token, just as long......")
	unknownCode, unknownBody := post("nobody", token)
	if wrongCode != http.StatusNotFound || unknownCode != wrongCode || unknownBody != wrongBody {
		t.Errorf("wrong token: %d %s, unknown Source: %d %s; want the same 404", wrongCode, wrongBody, unknownCode, unknownBody)
	}
	w.never(2*time.Second, "a sync by a wrong token", func() bool { return w.source("p").Status.ActiveSync != nil || len(w.sourceRuns("p")) > 0 })
	code, body := post("p", token)
	var answer struct{ Request string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusAccepted || answer.Request == "" {
		t.Fatalf("got %d %s", code, body)
	}
	w.eventually(60*time.Second, "the sync", func() bool {
		s := w.source("p").Status
		return s.LastWebhookRequest == answer.Request && s.ActiveSync == nil
	})
	w.never(2*time.Second, "a second sync", func() bool { return len(w.sourceRuns("p")) != 1 })
}

// secretReader lets the controller read one Secret of the namespace.
func (w *world) secretReader(secret string) *rbacv1.RoleBinding {
	w.Helper()
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "volferry-" + secret},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}},
	})
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "volferry-" + secret},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "volferry-" + secret},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "volferry-controller", Namespace: vault}},
	}
}

func TestA08MissedTicksCollapse(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 4, 10, 1, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(start)
	w := newWorld(t, func(w *world) { w.clock = clock })
	w.small()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "*/5 * * * *" })
	w.eventually(10*time.Second, "the schedule to be known", func() bool { return w.source("p").Status.NextSyncTime != nil })
	w.stop()
	clock.SetTime(start.Add(26 * time.Minute)) // 10:27, five ticks later
	w.startController()
	w.eventually(60*time.Second, "the sync that makes up for them", func() bool {
		s := w.source("p").Status
		return s.LastSyncTime != nil && s.ActiveSync == nil
	})
	w.never(3*time.Second, "a second sync", func() bool { return len(w.sourceRuns("p")) != 1 })
	if got, want := w.source("p").Status.NextSyncTime.UTC(), time.Date(2026, 5, 4, 10, 30, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("the next sync is at %v, want %v", got, want)
	}
}

func TestA09OnceADayAcrossDaylightSaving(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)
	clock := clocktesting.NewFakePassiveClock(start)
	w := newWorld(t, func(w *world) { w.clock = clock })
	w.small()
	edit(w, "p", func(s *v1alpha1.Source) {
		s.Spec.Trigger.Schedule, s.Spec.Trigger.TimeZone = "0 3 * * *", "Europe/Berlin"
	})
	w.eventually(10*time.Second, "the schedule to be known", func() bool { return w.source("p").Status.NextSyncTime != nil })
	// In the night to the 29th 02:00 is followed by 03:00.
	for now := start; now.Before(start.Add(23 * time.Hour)); now = now.Add(30 * time.Minute) {
		clock.SetTime(now)
		w.poke("p", now.String())
		w.eventually(60*time.Second, "the clock to be noticed", func() bool {
			s := w.source("p").Status
			return s.NextSyncTime != nil && s.NextSyncTime.After(now) && s.ActiveSync == nil
		})
	}
	runs := w.sourceRuns("p")
	if len(runs) != 1 {
		t.Fatalf("%d syncs, want 1", len(runs))
	}
	if got, want := w.source("p").Status.LastSyncStartTime.In(berlin), time.Date(2026, 3, 29, 3, 0, 0, 0, berlin); !got.Equal(want) {
		t.Errorf("the sync ran at %v, want %v", got, want)
	}
}

// poke makes the controller look at a Source, as the passing of real time would.
func (w *world) poke(name, value string) {
	w.Helper()
	edit(w, name, func(s *v1alpha1.Source) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations["test/poke"] = value
	})
}

func TestA10InitialSync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	edit(w, "p", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "0 0 1 1 *" })
	w.never(4*time.Second, "a sync before the first tick", func() bool { return w.source("p").Status.ActiveSync != nil || len(w.sourceRuns("p")) > 0 })
	s := w.source("p")
	w.must(w.client.Delete(w.ctx, s))
	w.eventually(20*time.Second, "the Source's end", func() bool { return w.count(&v1alpha1.Source{}) == 0 })
	again := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}, Spec: s.Spec}
	again.Spec.Trigger.InitialSync = "Immediate"
	w.create(again)
	w.eventually(60*time.Second, "the first sync", func() bool { return w.source("p").Status.LastSyncTime != nil })
	w.never(2*time.Second, "a second one", func() bool { return len(w.sourceRuns("p")) != 1 })
}
