// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/moverresult"
)

// endListener ends the listener in a way that leaves its result, and returns nil once it is gone: a transfer that is complete
// is taken in, and one with whom nobody connected leaves the volume as clean as it was. One that is just starting has no result yet; await says whether to wait
// for it to be ready.
func (r *destinationRun) endListener(ctx context.Context, await bool) error {
	mover, err := r.findJob(ctx, r.key(r.childSet))
	if err != nil {
		return err
	}
	if mover.job == nil {
		return r.neverListened(ctx)
	}
	if err := r.noteListener(ctx, mover); err != nil {
		return err
	}
	if !mover.finished() && !mover.running() {
		// The pod was read from the cache, which may lag behind: what it has done must not be missed.
		if err := r.findPod(ctx, r.APIReader, &mover); err != nil {
			return err
		}
	}
	switch {
	case mover.finished():
		// A transfer may have come to its end meanwhile. Where nothing receives any more it plays no part.
		if r.destination.Status.Staging != nil {
			if done, err := r.takeIn(ctx); done || err != nil {
				return err
			}
		}
		r.judgeListener(mover)
		if err := r.persist(ctx); err != nil {
			return err
		}
	case !mover.job.DeletionTimestamp.IsZero() || overdue(mover):
	case mover.terminated() != nil:
		return lookAgain("the Job's verdict on a listener that has ended", 250*time.Millisecond)
	case mover.running() || await:
		if err := r.endPod(ctx, mover); err != nil {
			return err
		}
		return lookAgain("the listener's end", 250*time.Millisecond)
	}
	return r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(r.childSet))
}

// neverListened takes the mark back that was set for a listener that was not made.
func (r *destinationRun) neverListened(ctx context.Context) error {
	staging := r.destination.Status.Staging
	if staging == nil || !staging.Dirty || staging.Listener != "" || staging.Cut {
		return nil
	}
	staging.Dirty = false
	return r.persist(ctx)
}

// judgeListener notes what a listener that ended without a complete transfer did to the volume: nothing where nobody
// connected. That it was clean before is known only of the listener for which it was marked dirty.
func (r *destinationRun) judgeListener(mover moverJob) {
	result, staging := mover.result(moverresult.Destination), r.destination.Status.Staging
	switch {
	case staging == nil || moverresult.Complete(result.ExitCode) || result.Sessions == nil:
	case *result.Sessions > 0:
		staging.Cut = true
	case staging.Listener == string(mover.job.UID) && !staging.Cut:
		staging.Dirty, staging.Listener = false, ""
	}
}

// endPod lets the kubelet end the mover's pod, which stays with the mover's result, unlike one that is deleted. A mover that
// has only just begun gets a moment more: one that is ended before it is ready to be leaves no result.
func (b *base) endPod(ctx context.Context, mover moverJob) error {
	if !mover.running() || mover.pod.Spec.ActiveDeadlineSeconds != nil || mover.pod.Status.StartTime == nil {
		return nil
	}
	patched := mover.pod.DeepCopy()
	// The kubelet counts from the start, by its own clock.
	age := max(time.Since(mover.pod.Status.StartTime.Time), 0)
	patched.Spec.ActiveDeadlineSeconds = ptr.To(int64(age/time.Second) + 2)
	return client.IgnoreNotFound(b.Client.Patch(ctx, patched, client.MergeFrom(mover.pod)))
}

// overdue tells of a pod that has not ended although it had the time: its node may be away.
func overdue(mover moverJob) bool {
	if mover.pod == nil || mover.pod.Spec.ActiveDeadlineSeconds == nil || mover.pod.Status.StartTime == nil {
		return false
	}
	seconds := *mover.pod.Spec.ActiveDeadlineSeconds + 2*build.TerminationGraceSeconds
	return time.Since(mover.pod.Status.StartTime.Time) > time.Duration(seconds)*time.Second
}
