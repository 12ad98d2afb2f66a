// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"time"

	"volferry.io/controller/api/v1alpha1"
)

// Requests are what a sync serves. All are remembered in the status as text: KIND or KIND:VALUE.
const (
	requestInitial  = "initial"
	requestSchedule = "schedule"
	requestOnDemand = "onDemand"
	requestWebhook  = "webhook"
)

// ticker is the part of a schedule that triggers need.
type ticker interface {
	// Next tick strictly after a moment; zero: none.
	Next(after time.Time) time.Time
	// Missed counts the ticks in (since, now] and gives the last of them.
	Missed(since, now time.Time) (int, time.Time)
}

// triggerInput is all that decides whether a sync is due.
type triggerInput struct {
	trigger    v1alpha1.SourceTrigger
	status     *v1alpha1.SourceStatus
	webhook    string // value of the sync-request annotation
	generation int64
	schedule   ticker // nil: no schedule
	now        time.Time
	// jitter puts the start of the sync of a tick off.
	jitter func(tick time.Time) time.Duration
}

// decision is what the triggers say.
type decision struct {
	// requests to serve by a sync that starts now; none: no sync is due.
	requests []string
	// tick is the last tick of the schedule that the sync serves, and ticks how many collapse into it.
	tick  time.Time
	ticks int
	// next is when to decide again, zero: only after a change.
	next time.Time
	// blocked says that requests wait for a retry that is not due, or will not be made.
	blocked bool
}

// decide whether a sync is due. It must not be asked while one is active, nor while the Source is paused: requests are
// level-based, so whatever arrives meanwhile is found afterwards, and many become one.
func decide(in triggerInput) decision {
	var d decision
	fresh := in.asked()
	retry := in.status.Retry
	failed := retry != nil && len(retry.Requests) > 0
	if failed {
		fresh = slices.DeleteFunc(fresh, func(r string) bool { return slices.Contains(retry.Requests, r) })
	}
	if failed && len(fresh) == 0 {
		// An edit of the resource may have mended what no retry could.
		edited := retry.Permanent && retry.Generation != in.generation
		switch {
		case retry.Permanent && !edited:
			d.blocked = true
			return d
		case retry.NextAttempt != nil && in.now.Before(retry.NextAttempt.Time) && !edited:
			d.blocked = true
			d.next = retry.NextAttempt.Time
			return d
		}
	}
	d.requests = fresh
	in.addTicks(&d, failed)
	if failed {
		d.requests = withOlder(d.requests, retry.Requests)
	}
	slices.Sort(d.requests)
	return d
}

// withOlder adds older requests of kinds that the newer ones do not have. A newer request of a kind takes the place of an
// older one, so that the list has an end, and the last value that was asked for is the one that is acknowledged.
func withOlder(newer, older []string) []string {
	kind := func(request string) string { name, _, _ := strings.Cut(request, ":"); return name }
	for _, old := range older {
		if !slices.ContainsFunc(newer, func(n string) bool { return kind(n) == kind(old) }) {
			newer = append(newer, old)
		}
	}
	return newer
}

// asked are the requests that wait, but for the schedule's.
func (in triggerInput) asked() []string {
	var asked []string
	if in.trigger.InitialSync == v1alpha1.InitialSyncImmediate && !in.status.InitialSyncDone {
		asked = append(asked, requestInitial)
	}
	if value := in.trigger.OnDemand; value != "" && value != in.status.LastOnDemand {
		asked = append(asked, requestOnDemand+":"+value)
	}
	if in.trigger.Webhook != nil && in.webhook != "" && in.webhook != in.status.LastWebhookRequest {
		asked = append(asked, requestWebhook+":"+in.webhook)
	}
	return asked
}

// addTicks adds the ticks since the last one that was served: they are one request, however many.
func (in triggerInput) addTicks(d *decision, retried bool) {
	if in.schedule == nil || in.status.LastScheduleTime == nil {
		return
	}
	ticks, last := in.schedule.Missed(in.status.LastScheduleTime.Time, in.now)
	if ticks == 0 {
		d.next = in.schedule.Next(in.now)
		return
	}
	// A late tick has been put off enough, and a sync that begins anyway serves the tick as well.
	start := last.Add(in.jitter(last))
	if ticks == 1 && len(d.requests) == 0 && !retried && in.now.Before(start) {
		d.next = start
		return
	}
	d.tick, d.ticks = last, ticks
	d.requests = append(d.requests, requestSchedule+":"+last.UTC().Format(time.RFC3339))
}

// acknowledge notes in the status that a sync has served its requests.
func acknowledge(status *v1alpha1.SourceStatus, requests []string) {
	for _, request := range requests {
		kind, value, _ := strings.Cut(request, ":")
		switch kind {
		case requestOnDemand:
			status.LastOnDemand = value
		case requestWebhook:
			status.LastWebhookRequest = value
		}
	}
}
