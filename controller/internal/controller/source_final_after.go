// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"volferry.io/controller/api/v1alpha1"
)

// calledOff tells whether a final sync is to be undone. That needs no parameters, valid or not.
func (r *sourceRun) calledOff() bool {
	status := r.source.Status.FinalSync
	return r.source.Spec.FinalSync == nil && status != nil && status.Completed == nil
}

// abortFinalSync undoes what a final sync that was called off has done.
func (r *sourceRun) abortFinalSync(ctx context.Context) error {
	if active := r.source.Status.ActiveSync; active != nil && active.FinalSyncID != "" {
		return r.endFinalMover(ctx)
	}
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonFenced, "the final sync was called off; the volume goes back to its claim")
	if err := r.giveBack(ctx, r.finalTaking()); err != nil {
		return err
	}
	if err := r.awaitGone(ctx, r.source, &corev1.Secret{}, r.finalObject()); err != nil {
		return err
	}
	r.source.Status.FinalSync, r.source.Status.Retry = nil, sameAttempt(r.source.Status.Retry)
	if err := r.persist(ctx); err != nil {
		return err
	}
	return lookAgain("the triggers", time.Millisecond)
}

// sameAttempt is what is kept of a failure that is of the past: the peer may have the transfer, and takes the next one of the
// same number for a repetition only by the attempt's id.
func sameAttempt(retry *v1alpha1.Retry) *v1alpha1.Retry {
	if retry == nil || retry.AttemptID == "" {
		return nil
	}
	return &v1alpha1.Retry{AttemptID: retry.AttemptID}
}

// afterFinalSync keeps the volume in the vault until a Destination has adopted it, or gives it back where the user says
// Release. The Source goes on as usual once the user removes spec.finalSync and the volume is not held any more.
func (r *sourceRun) afterFinalSync(ctx context.Context) (usual bool, err error) {
	status := &r.source.Status
	spec := r.source.Spec.FinalSync
	held := false
	if status.Fence != nil {
		pv, err := r.findPV(ctx, status.Fence.PVName)
		if err != nil {
			return false, err
		}
		key := r.finalObject()
		held = pv != nil && refers(pv, key.Namespace, key.Name)
	}
	if release := spec != nil && spec.AfterSync == v1alpha1.AfterSyncRelease; !held || release {
		held = false
		// Of a volume that went elsewhere only the vault's objects are left.
		if err := r.giveBack(ctx, r.finalTaking()); err != nil {
			return false, err
		}
		if err := r.awaitGone(ctx, r.source, &corev1.Secret{}, r.finalObject()); err != nil {
			return false, err
		}
	}
	if spec == nil && !held {
		status.FinalSync = nil
		if err := r.persist(ctx); err != nil {
			return false, err
		}
		return false, lookAgain("the triggers", time.Millisecond)
	}
	message := "the final sync is over; no schedule runs until spec.finalSync is removed"
	if held {
		message = fmt.Sprintf("the final sync is over; the volume waits in the vault for a Destination that adopts claim %s, for afterSync Release, "+
			"or for the end of this Source", r.source.Spec.Source)
	}
	status.FinalSync.Message = message
	status.NextSyncTime = nil
	r.set.True(v1alpha1.ConditionFinalSynced, v1alpha1.ReasonCompleted, "final sync "+status.FinalSync.ID+" has completed")
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonFenced, message)
	return false, lookAgain("an adoption", listenPoll)
}

// leaveFence gives a fenced volume back when the Source goes.
func (r *sourceRun) leaveFence(ctx context.Context) error {
	if err := r.awaitGone(ctx, r.source, &batchv1.Job{}, r.finalObject()); err != nil {
		return err
	}
	if err := r.giveBack(ctx, r.finalTaking()); err != nil {
		return err
	}
	return r.awaitGone(ctx, r.source, &corev1.Secret{}, r.finalObject())
}
