// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/params"
)

// listen keeps a receive mover running, one Job for each transfer, and takes in what it received.
func (r *destinationRun) listen(ctx context.Context) error {
	if done, err := r.takeIn(ctx); done || err != nil {
		return err
	}
	if r.destination.Spec.Paused {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonPaused, "spec.paused is set; nobody listens")
		return r.endListener(ctx, false)
	}
	if err := r.pauseAfterFailure(ctx); err != nil {
		return err
	}
	if err := r.endOther(ctx); err != nil {
		return err
	}
	if err := r.markDirty(ctx); err != nil {
		return err
	}
	mover, err := r.ensureJob(ctx, r.jobInput())
	if err != nil {
		var wait *waitError
		if errors.As(err, &wait) {
			r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonWaitingForTrigger, "nobody listens yet: waiting for "+wait.what)
		}
		return err
	}
	if err := r.noteListener(ctx, mover); err != nil {
		return err
	}
	if !mover.finished() {
		return r.watchListener(ctx, mover)
	}
	result := mover.result(moverresult.Destination)
	r.destination.Status.LatestMover = latestMover(result)
	return r.receiveFailed(ctx, mover, result)
}

// takeIn takes a completed transfer in, whatever has been edited since its listener was made: the data are there, and the
// Source counts on it.
func (r *destinationRun) takeIn(ctx context.Context) (done bool, err error) {
	mover, err := r.findJob(ctx, r.key(r.childSet))
	if err != nil || mover.job == nil || !names.Deletable(mover.job, r.destination) {
		return false, err
	}
	if err := r.noteListener(ctx, mover); err != nil {
		return false, err
	}
	if !mover.finished() {
		return false, r.awaitVerdict(ctx, mover)
	}
	last := r.destination.Status.LastReceived
	if last != nil && last.JobUID == string(mover.job.UID) {
		return false, nil
	}
	result := mover.result(moverresult.Destination)
	if !moverresult.Complete(result.ExitCode) {
		return false, nil
	}
	r.destination.Status.LatestMover = latestMover(result)
	return true, r.received(ctx, mover, result)
}

// awaitVerdict waits where a mover has ended and its Job does not say so yet, lest the Job be deleted before it is read.
// The pod is read past the cache only when the Job is about to go.
func (r *destinationRun) awaitVerdict(ctx context.Context, mover moverJob) error {
	if r.destination.Spec.Paused || !sameJob(mover.job, build.Job(r.jobInput())) {
		if err := r.findPod(ctx, r.APIReader, &mover); err != nil {
			return err
		}
	}
	if mover.terminated() == nil {
		return nil
	}
	return lookAgain("the Job's verdict on a mover that has ended", deletionPoll)
}

// markDirty puts on record, before anybody listens, that the staging volume may hold part of a transfer. Only the end of one
// takes that back: whether a transfer has begun is nothing that can be relied on being told.
func (r *destinationRun) markDirty(ctx context.Context) error {
	if r.destination.Status.Staging.Dirty {
		return nil
	}
	r.destination.Status.Staging.Dirty = true
	return r.persist(ctx)
}

// endOther ends a listener that was made from other inputs, so that it says what it did.
func (r *destinationRun) endOther(ctx context.Context) error {
	mover, err := r.findJob(ctx, r.key(r.childSet))
	if err != nil || mover.job == nil || mover.finished() || sameJob(mover.job, build.Job(r.jobInput())) {
		return err
	}
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonWaitingForTrigger, "nobody listens yet: another listener comes to its end")
	return r.endListener(ctx, false)
}

// noteListener puts on record which Job the volume was marked dirty for. It comes before that Job can be replaced by
// another one, so that no other is ever taken for it.
func (r *destinationRun) noteListener(ctx context.Context, mover moverJob) error {
	staging := r.destination.Status.Staging
	current := mover.job.Annotations[build.AnnotationAttempt] == r.attempt() && mover.job.DeletionTimestamp.IsZero()
	if staging == nil || !staging.Dirty || staging.Listener != "" || !current {
		return nil
	}
	staging.Listener = string(mover.job.UID)
	return r.persist(ctx)
}

// pauseAfterFailure waits until the next listener is due; for good after a permanent failure, until the resource is
// edited.
func (r *destinationRun) pauseAfterFailure(ctx context.Context) error {
	retry := r.destination.Status.Retry
	if retry == nil {
		return nil
	}
	if retry.Generation != r.destination.Generation || r.grewSince(retry) {
		r.destination.Status.Retry = nil
		return nil
	}
	if !retry.Permanent && (retry.NextAttempt == nil || !r.now.Before(retry.NextAttempt.Time)) {
		return nil
	}
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, r.failureMessage())
	if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(r.childSet)); err != nil {
		return err
	}
	if retry.Permanent {
		return errStalled
	}
	return lookAgain("the next try", until(r.now, retry.NextAttempt.Time))
}

// grewSince tells whether the staging volume has become larger since a failure for lack of space.
func (r *destinationRun) grewSince(retry *v1alpha1.Retry) bool {
	capacity := r.destination.Status.Staging.Capacity
	return retry.Capacity != nil && capacity != nil && capacity.Cmp(*retry.Capacity) > 0
}

func (r *destinationRun) failureMessage() string {
	retry := r.destination.Status.Retry
	message := streak(retry, r.destination.Status.LatestMover)
	if retry.Permanent {
		return "stopped, a retry would fail in the same way: edit the Destination once the cause is mended; " + message
	}
	return message
}

// jobInput of the listener. Each completed transfer is followed by a listener of its own.
func (r *destinationRun) jobInput() build.JobInput {
	transfer := params.Transfer{ReplicationID: r.destination.Spec.ReplicationID, Acknowledge: r.destination.Spec.Acknowledge}
	status := &r.destination.Status
	if status.Lineage != nil {
		transfer.Epoch, transfer.Seq, transfer.SourceVolumeID = status.Lineage.Epoch, status.Lineage.Seq, status.Lineage.SourceVolumeID
	}
	if status.LastReceived != nil {
		transfer.Attempt = status.LastReceived.AttemptID
	}
	return build.JobInput{
		Child:       r.child(r.childSet),
		Image:       r.Options.MoverImage,
		PullSecrets: r.Options.PullSecrets,
		Role:        "destination",
		// The size is left out of the transfer: it changes when the claim is bound or grown.
		Env:           r.params.MoverEnv(transfer),
		ClaimName:     r.childSet,
		VolumeMode:    r.params.VolumeMode,
		SecretName:    r.childSet,
		SecretVersion: r.keyVersion,
		Attempt:       r.attempt(),
		Privileged:    r.privileged,
		Pod:           r.params.Common,
	}
}

// attempt tells one listener from the next.
func (r *destinationRun) attempt() string {
	received, failures := "", int32(0)
	if last := r.destination.Status.LastReceived; last != nil {
		received = last.JobUID
	}
	if retry := r.destination.Status.Retry; retry != nil {
		failures = retry.Failures
	}
	return fmt.Sprintf("after %s, %d failures", received, failures)
}

// watchListener says whether the listener is ready, and shows the progress of a transfer.
func (r *destinationRun) watchListener(ctx context.Context, mover moverJob) error {
	if !mover.running() {
		r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonWaitingForTrigger, "the listener starts: "+mover.whyPending())
		return lookAgain("the listener to start", progressPoll)
	}
	r.askListener(ctx, mover)
	if r.destination.Status.MethodStatus[moverresult.KeyProgressPhase] != "" {
		r.set.True(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonSyncInProgress, "a transfer is being received")
		return lookAgain("the transfer", progressPoll)
	}
	r.set.True(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonListening, "a mover listens for the Source")
	return lookAgain("a transfer", listenPoll)
}

// received takes a completed transfer in: first on record, then an image is made of it, then the next listener starts.
func (r *destinationRun) received(ctx context.Context, mover moverJob, result *moverresult.Result) error {
	status := &r.destination.Status
	bytes := result.WireReceived
	seq := result.Seq
	if seq == 0 && status.LastReceived != nil {
		// Pushed by hand, without a number.
		seq = status.LastReceived.Seq
	}
	status.LastReceived = &v1alpha1.Received{
		Seq: seq, FinalSyncID: result.FinalSyncID, Bytes: bytes, Time: &metav1.Time{Time: r.now}, JobUID: string(mover.job.UID),
		AttemptID: result.Attempt,
	}
	if status.Lineage == nil {
		status.Lineage = &v1alpha1.DestinationLineage{}
	}
	status.Lineage.Seq = seq
	if peer := result.Peer; peer != nil {
		status.Lineage.ReplicationID = r.destination.Spec.ReplicationID
		enterEpoch(status.Lineage, peer.Epoch)
		if peer.SourceVolumeID != "" {
			status.Lineage.SourceVolumeID = peer.SourceVolumeID
		}
		status.PeerSize = sizeOf(peer.Size)
	}
	status.Staging.Dirty, status.Staging.Cut, status.Staging.Listener = false, false, ""
	status.Retry = nil
	status.MethodStatus = withoutProgress(status.MethodStatus)
	r.report("bytesReceived", fmt.Sprint(bytes))
	r.report("engineVersion", result.EngineVersion)
	r.report("protocol", result.Protocol)
	r.set.True(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonVerified, "the Source has completed a transfer")
	r.planImage(seq, result.FinalSyncID, string(mover.job.UID))
	if err := r.persist(ctx); err != nil {
		return err
	}
	metrics.Success(r.labels(), r.now, time.Duration(result.ElapsedSeconds*float64(time.Second)), bytes, result.MatchedBytes)
	r.note(r.destination, corev1.EventTypeNormal, "TransferCompleted", "Receive", "transfer %d: %d bytes received", seq, bytes)
	return lookAgain("the image", time.Millisecond)
}

func sizeOf(bytes int64) *quantity {
	if bytes <= 0 {
		return nil
	}
	return resource.NewQuantity(bytes, resource.BinarySI)
}

// receiveFailed puts the next listener off, or stops.
func (r *destinationRun) receiveFailed(ctx context.Context, mover moverJob, result *moverresult.Result) error {
	status := &r.destination.Status
	if status.Retry == nil {
		status.Retry = &v1alpha1.Retry{}
		r.note(r.destination, corev1.EventTypeWarning, "TransferFailed", "Receive", "%s", result.Summary())
	}
	retry := status.Retry
	retry.Failures++
	retry.Generation = r.destination.Generation
	retry.Permanent = mover.permanent(result)
	retry.NextAttempt = nil
	retry.Capacity = status.Staging.Capacity
	r.judgeListener(mover)
	if !retry.Permanent {
		retry.NextAttempt = &metav1.MicroTime{Time: r.now.Add(r.Options.backoff(retry.Failures))}
	}
	status.MethodStatus = withoutProgress(status.MethodStatus)
	if result.Peer != nil {
		status.PeerSize = sizeOf(result.Peer.Size)
	}
	if err := r.persist(ctx); err != nil {
		return err
	}
	metrics.Failure(r.labels(), result.Reason)
	return r.pauseAfterFailure(ctx)
}
