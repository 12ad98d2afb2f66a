// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/limiter"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/names"
)

// Outcomes of a sync.
const (
	outcomeSucceeded = "Succeeded"
	outcomeFailed    = "Failed"
	outcomeAbandoned = "Abandoned"
)

// start begins a sync if one is due. It is on record before anything is done for it.
func (r *sourceRun) start(ctx context.Context) error {
	if r.source.Spec.FinalSync != nil {
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
		return lookAgain("the final sync", time.Millisecond)
	}
	if r.source.Spec.Paused {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonPaused, "spec.paused is set; requests are remembered")
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
		return waitFor("the end of the pause")
	}
	due := decide(r.triggers())
	if !due.next.IsZero() {
		r.next = sooner(r.next, until(r.now, due.next))
	}
	if len(due.requests) == 0 {
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
		r.idle(due)
		return nil
	}
	if err := r.params.ReadyToSync(); err != nil {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, err.Error())
		return errStalled
	}
	if !r.Limiter.Acquire(client.ObjectKeyFromObject(r.source)) {
		r.set.False(v1alpha1.ConditionSynchronizing, r.waitingReason(), "a sync is due and waits until fewer run at once")
		return waitFor("a free place")
	}
	return r.begin(ctx, due)
}

func (r *sourceRun) triggers() triggerInput {
	in := triggerInput{
		trigger:    r.source.Spec.Trigger,
		status:     &r.source.Status,
		webhook:    r.source.Annotations[v1alpha1.AnnotationSyncRequest],
		generation: r.source.Generation,
		now:        r.now,
		jitter: func(tick time.Time) time.Duration {
			return limiter.Jitter(string(r.source.UID), tick, r.schedule.Next(tick).Sub(tick), r.Options.StartJitter)
		},
	}
	if r.schedule != nil {
		in.schedule = r.schedule
	}
	return in
}

// begin puts the sync on record and takes its first step.
func (r *sourceRun) begin(ctx context.Context, due decision) error {
	status := &r.source.Status
	attempt := string(uuid.NewUUID())
	if status.Retry != nil && status.Retry.AttemptID != "" {
		attempt = status.Retry.AttemptID
	}
	status.ActiveSync = &v1alpha1.ActiveSync{
		Seq:       r.seq() + 1,
		AttemptID: attempt,
		Start:     metav1.NewMicroTime(r.now),
		Stage:     v1alpha1.StageCopying,
		Requests:  due.requests,
		Try:       1,
	}
	status.LastSyncStartTime = &metav1.Time{Time: r.now}
	status.InitialSyncDone = true
	if due.ticks > 0 {
		status.LastScheduleTime = &metav1.Time{Time: due.tick}
	}
	r.synchronizing("the sync has begun")
	if err := r.persist(ctx); err != nil {
		return err
	}
	if due.ticks > 1 {
		missed := due.ticks - 1
		metrics.MissedIntervals(r.labels(), missed)
		r.note(r.source, corev1.EventTypeWarning, "ScheduleMissed", "StartSync",
			"%d ticks passed without a sync of their own; this one makes up for them", missed)
	}
	r.note(r.source, corev1.EventTypeNormal, "TransferStarted", "StartSync", "sync %d for %s", status.ActiveSync.Seq, strings.Join(due.requests, ", "))
	return r.advance(ctx)
}

// seq of the last completed transfer.
func (r *sourceRun) seq() int64 {
	if r.source.Status.Lineage == nil {
		return 0
	}
	return r.source.Status.Lineage.Seq
}

// advance takes the active sync as far as it goes now.
func (r *sourceRun) advance(ctx context.Context) error {
	active := r.source.Status.ActiveSync
	if active.Stage == v1alpha1.StageCopying {
		// Mostly it has its place since it began; it gave it back if it had to wait for something that was missing.
		if !r.Limiter.Acquire(client.ObjectKeyFromObject(r.source)) {
			r.synchronizing("the sync waits until fewer run at once")
			return waitFor("a free place")
		}
		r.synchronizing("a point in time of the volume is being kept")
		if err := r.keepPoint(ctx); err != nil {
			return err
		}
		active.Stage = v1alpha1.StageMoving
		if err := r.persist(ctx); err != nil {
			return err
		}
	}
	if r.source.Status.ActiveSync.Stage == v1alpha1.StageMoving {
		if err := r.move(ctx); err != nil {
			return err
		}
	}
	if err := r.cleanUp(ctx); err != nil {
		return err
	}
	// A request may have arrived meanwhile.
	return r.start(ctx)
}

// keepPoint makes the copy, and tells of one that the API server refuses.
func (r *sourceRun) keepPoint(ctx context.Context) error {
	err := r.copy(ctx)
	switch {
	case apierrors.IsInvalid(err):
		if err := r.rejected(ctx, err); err != nil {
			return err
		}
		return lookAgain("cleaning up", time.Millisecond)
	case apierrors.IsForbidden(err):
		// A quota, perhaps, which others may free: no place is held meanwhile.
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
	}
	return err
}

// cleanUp removes what the sync made and then forgets the sync.
func (r *sourceRun) cleanUp(ctx context.Context) error {
	r.set.False(v1alpha1.ConditionSynchronizing, r.cleaningReason(), r.endMessage())
	if err := r.removeChildren(ctx); err != nil {
		return err
	}
	r.source.Status.ActiveSync = nil
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.Limiter.Release(client.ObjectKeyFromObject(r.source))
	return nil
}

// cleaningReason keeps a failure visible while its remains are removed.
func (r *sourceRun) cleaningReason() string {
	if r.source.Status.ActiveSync.Outcome == outcomeFailed {
		return v1alpha1.ReasonError
	}
	return v1alpha1.ReasonCleaningUp
}

func (r *sourceRun) endMessage() string {
	if r.source.Status.ActiveSync.Outcome == outcomeFailed {
		return r.failureMessage()
	}
	return "the sync has ended; its copies are being removed"
}

// idle says what the Source waits for.
func (r *sourceRun) idle(due decision) {
	status := &r.source.Status
	if due.blocked {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, r.failureMessage())
		return
	}
	if status.Retry != nil && status.Retry.Failures > 0 {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, r.failureMessage())
		return
	}
	r.set.False(v1alpha1.ConditionSynchronizing, r.waitingReason(), "no sync is due")
}

func (r *sourceRun) waitingReason() string {
	switch {
	case r.source.Spec.Paused:
		return v1alpha1.ReasonPaused
	case r.source.Spec.Trigger.Schedule != "":
		return v1alpha1.ReasonWaitingForSchedule
	}
	return v1alpha1.ReasonWaitingForTrigger
}

// failureMessage says what failed last and what happens next.
func (r *sourceRun) failureMessage() string {
	retry := r.source.Status.Retry
	if retry == nil {
		return "the last sync failed"
	}
	message := streak(retry, r.source.Status.LatestMover)
	switch {
	case retry.Permanent:
		message = "stopped, a retry would fail in the same way: edit the Source or ask for a sync once the cause is mended; " + message
	case retry.NextAttempt != nil:
		message = fmt.Sprintf("next try at %s; %s", retry.NextAttempt.UTC().Format(time.RFC3339), message)
	}
	return message
}

func (r *sourceRun) synchronizing(message string) {
	r.set.True(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonSyncInProgress, message)
}

func (r *sourceRun) labels() metrics.Labels {
	return metrics.Labels{Namespace: r.source.Namespace, Name: r.source.Name, Role: names.RoleSource, Method: v1alpha1.MethodRsync}
}
