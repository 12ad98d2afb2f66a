// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/schedule"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(offset time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(offset)} }

func micro(offset time.Duration) *metav1.MicroTime {
	return &metav1.MicroTime{Time: noon.Add(offset)}
}

func everyMinute(t *testing.T) *schedule.Schedule {
	t.Helper()
	parsed, err := schedule.Parse("* * * * *", "UTC", noon)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestDecide(t *testing.T) {
	webhook := &v1alpha1.WebhookTrigger{TokenSecret: "s"}
	tests := map[string]struct {
		trigger      v1alpha1.SourceTrigger
		status       v1alpha1.SourceStatus
		annotation   string
		generation   int64
		scheduled    bool
		now          time.Duration // after noon
		jitter       time.Duration
		wantRequests []string
		wantTicks    int
		wantNext     time.Duration // after noon; 0: none
		wantBlocked  bool
	}{
		"no trigger": {},
		"before the first tick": {
			scheduled: true, status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: 30 * time.Second, wantNext: time.Minute,
		},
		"at a tick": {
			scheduled: true, status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: time.Minute,
			wantRequests: []string{"schedule:2026-03-01T12:01:00Z"}, wantTicks: 1,
		},
		"a tick is put off by jitter": {
			scheduled: true, status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: time.Minute, jitter: 3 * time.Second,
			wantNext: 63 * time.Second,
		},
		"a tick starts when the jitter is over": {
			scheduled: true, status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: 63 * time.Second, jitter: 3 * time.Second,
			wantRequests: []string{"schedule:2026-03-01T12:01:00Z"}, wantTicks: 1,
		},
		"missed ticks collapse": {
			scheduled: true, status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: 5*time.Minute + time.Second,
			wantRequests: []string{"schedule:2026-03-01T12:05:00Z"}, wantTicks: 5,
		},
		"initial sync at once": {
			trigger: v1alpha1.SourceTrigger{InitialSync: "Immediate"}, wantRequests: []string{"initial"},
		},
		"initial sync once": {
			trigger: v1alpha1.SourceTrigger{InitialSync: "Immediate"}, status: v1alpha1.SourceStatus{InitialSyncDone: true},
		},
		"on demand": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "b"}, status: v1alpha1.SourceStatus{LastOnDemand: "a"}, wantRequests: []string{"onDemand:b"},
		},
		"on demand, served": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "a"}, status: v1alpha1.SourceStatus{LastOnDemand: "a"},
		},
		"webhook": {
			trigger: v1alpha1.SourceTrigger{Webhook: webhook}, annotation: "u2", status: v1alpha1.SourceStatus{LastWebhookRequest: "u1"},
			wantRequests: []string{"webhook:u2"},
		},
		"an annotation without a webhook": {annotation: "u2"},
		"all at once": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "b", Webhook: webhook}, annotation: "u", scheduled: true,
			status: v1alpha1.SourceStatus{LastScheduleTime: at(0)}, now: time.Minute,
			wantRequests: []string{"onDemand:b", "schedule:2026-03-01T12:01:00Z", "webhook:u"}, wantTicks: 1,
		},
		"a retry is not due": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "b"}, now: time.Second, wantNext: 10 * time.Second, wantBlocked: true,
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Failures: 1, Requests: []string{"onDemand:b"}, NextAttempt: micro(10 * time.Second)}},
		},
		"a retry is due": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "b"}, now: 10 * time.Second, wantRequests: []string{"onDemand:b"},
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Failures: 1, Requests: []string{"onDemand:b"}, NextAttempt: micro(10 * time.Second)}},
		},
		"a tick does not hurry a retry": {
			scheduled: true, now: 65 * time.Second, wantNext: 90 * time.Second, wantBlocked: true,
			status: v1alpha1.SourceStatus{LastScheduleTime: at(0), Retry: &v1alpha1.Retry{Failures: 4, Requests: []string{"schedule:x"}, NextAttempt: micro(90 * time.Second)}},
		},
		"a new request does not wait for a retry": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "c"}, now: time.Second, wantRequests: []string{"onDemand:c"},
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Failures: 1, Requests: []string{"onDemand:b"}, NextAttempt: micro(10 * time.Second)}},
		},
		"a tick takes the place of an older one": {
			scheduled: true, now: 65 * time.Second, wantRequests: []string{"onDemand:a", "schedule:2026-03-01T12:01:00Z"}, wantTicks: 1,
			status:  v1alpha1.SourceStatus{LastScheduleTime: at(0), Retry: &v1alpha1.Retry{Failures: 4, Requests: []string{"onDemand:a", "schedule:x"}, NextAttempt: micro(time.Second)}},
			trigger: v1alpha1.SourceTrigger{OnDemand: "a"},
		},
		"a permanent failure stops the schedule": {
			scheduled: true, now: 10 * time.Minute, wantBlocked: true, generation: 3,
			status: v1alpha1.SourceStatus{LastScheduleTime: at(0), Retry: &v1alpha1.Retry{Failures: 1, Permanent: true, Generation: 3, Requests: []string{"schedule:x"}}},
		},
		"an edit ends a permanent failure": {
			now: time.Minute, generation: 4, wantRequests: []string{"onDemand:b"}, trigger: v1alpha1.SourceTrigger{OnDemand: "b"},
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Failures: 1, Permanent: true, Generation: 3, Requests: []string{"onDemand:b"}}},
		},
		"a request ends a permanent failure": {
			now: time.Minute, generation: 3, wantRequests: []string{"onDemand:c", "schedule:x"}, trigger: v1alpha1.SourceTrigger{OnDemand: "c"},
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Failures: 1, Permanent: true, Generation: 3, Requests: []string{"schedule:x"}}},
		},
		"what an abandoned sync was to serve is served at once": {
			trigger: v1alpha1.SourceTrigger{OnDemand: "b"}, wantRequests: []string{"onDemand:b"},
			status: v1alpha1.SourceStatus{Retry: &v1alpha1.Retry{Requests: []string{"onDemand:b"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := triggerInput{
				trigger: test.trigger, status: &test.status, webhook: test.annotation, generation: test.generation,
				now: noon.Add(test.now), jitter: func(time.Time) time.Duration { return test.jitter },
			}
			if test.scheduled {
				in.schedule = everyMinute(t)
			}
			got := decide(in)
			if !slices.Equal(got.requests, test.wantRequests) && len(got.requests)+len(test.wantRequests) > 0 {
				t.Errorf("requests %q, want %q", got.requests, test.wantRequests)
			}
			if got.ticks != test.wantTicks {
				t.Errorf("%d ticks, want %d", got.ticks, test.wantTicks)
			}
			if test.wantNext == 0 && len(test.wantRequests) == 0 && !got.next.IsZero() {
				t.Errorf("next at %v, want none", got.next)
			}
			if test.wantNext != 0 && !got.next.Equal(noon.Add(test.wantNext)) {
				t.Errorf("next at %v, want %v", got.next, noon.Add(test.wantNext))
			}
			if got.blocked != test.wantBlocked {
				t.Errorf("blocked %v, want %v", got.blocked, test.wantBlocked)
			}
		})
	}
}

func TestAcknowledge(t *testing.T) {
	var status v1alpha1.SourceStatus
	acknowledge(&status, []string{"initial", "onDemand:with:colons", "schedule:2026-03-01T12:01:00Z", "webhook:u"})
	if status.LastOnDemand != "with:colons" || status.LastWebhookRequest != "u" {
		t.Errorf("got %q and %q", status.LastOnDemand, status.LastWebhookRequest)
	}
}

func TestBackoff(t *testing.T) {
	o := Options{RetryDelay: 10 * time.Second, RetryDelayMax: time.Minute}
	for failures, want := range map[int32]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 4: time.Minute, 1000: time.Minute} {
		if got := o.backoff(failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
}
