// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/params"
	"volferry.io/controller/internal/volume"
)

type quantity = resource.Quantity

// logTailLimit of status.latestMover.logTail, in bytes.
const logTailLimit = 1024

// failure of a sync, or of one of its tries.
type failure struct {
	// reason is the engine's word, or a condition's reason where no mover ran.
	reason    string
	exitCode  int32
	text      string
	permanent bool
	// moverRan is set where the mover's own result is on record already.
	moverRan bool
}

// move runs the mover until it has succeeded, or failed for good.
func (r *sourceRun) move(ctx context.Context) error {
	status := &r.source.Status
	if retry := status.Retry; retry != nil && retry.NextAttempt != nil && status.ActiveSync.Try > 1 && r.now.Before(retry.NextAttempt.Time) {
		// The place is given up meanwhile: a peer that is away must not hold others up.
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
		r.synchronizing(r.failureMessage())
		if err := r.dropUnstarted(ctx); err != nil {
			return err
		}
		return lookAgain("the next try", until(r.now, retry.NextAttempt.Time))
	}
	if !r.Limiter.Acquire(client.ObjectKeyFromObject(r.source)) {
		return waitFor("a free place")
	}
	if there, err := r.copyThere(ctx); err != nil || !there {
		if err != nil {
			return err
		}
		return r.endSync(ctx, outcomeAbandoned)
	}
	input, err := r.jobInput(ctx)
	if err != nil {
		return err
	}
	mover, err := r.ensureJob(ctx, input)
	if apierrors.IsInvalid(err) {
		return r.rejected(ctx, err)
	}
	if err != nil {
		var wait *waitError
		if errors.As(err, &wait) {
			r.synchronizing("the mover cannot start yet: waiting for " + wait.what)
		}
		return err
	}
	if !mover.finished() {
		if why := r.notStarted(mover); why != "" {
			return r.tryFailed(ctx, failure{reason: "MoverNotStarted", exitCode: 1, text: why})
		}
		return r.watchMover(ctx, mover)
	}
	result := mover.result(moverresult.Source)
	if moverresult.Complete(result.ExitCode) {
		return r.succeeded(ctx, result)
	}
	r.recordMover(result)
	return r.tryFailed(ctx, failure{
		reason: result.Reason, exitCode: int32(result.ExitCode), text: result.Summary(), permanent: mover.permanent(result), moverRan: true,
	})
}

// dropUnstarted removes the Job of a try that was given up before its mover started: it must not start without a place.
func (r *sourceRun) dropUnstarted(ctx context.Context) error {
	old, err := r.findJob(ctx, r.moverKey())
	if err != nil || old.job == nil || old.finished() {
		return err
	}
	return r.awaitGone(ctx, r.source, &batchv1.Job{}, r.moverKey())
}

// jobInput of this try.
func (r *sourceRun) jobInput(ctx context.Context) (build.JobInput, error) {
	active := r.source.Status.ActiveSync
	recorded := r.source.Status.SourceVolume
	transfer := params.Transfer{
		ReplicationID:  r.source.Spec.ReplicationID,
		Seq:            active.Seq,
		Attempt:        active.AttemptID,
		SourceVolumeID: recorded.HandleHash,
		Acknowledge:    r.source.Spec.Acknowledge,
		FinalSyncID:    active.FinalSyncID,
	}
	if r.source.Status.Lineage != nil {
		transfer.Epoch = r.source.Status.Lineage.Epoch
	}
	if recorded.Capacity != nil {
		transfer.VolumeSize = recorded.Capacity.Value()
	}
	input := build.JobInput{
		Child:       r.child(),
		Image:       r.Options.MoverImage,
		PullSecrets: r.Options.PullSecrets,
		Role:        "source",
		Env:         r.params.MoverEnv(transfer),
		ClaimName:   r.childSet,
		VolumeMode:  r.volumeMode(),
		ReadOnly:    true,
		SecretName:  r.params.KeySecret,
		Attempt:     fmt.Sprintf("%s@%d/%d", active.AttemptID, active.Start.UnixMicro(), active.Try),
		Privileged:  r.privileged,
		Pod:         r.params.Common,
	}
	if active.FinalSyncID != "" {
		// The vault has the volume, a copy of the key, and service accounts of its own.
		input.Child = r.finalChild()
		input.ClaimName, input.SecretName = input.Child.Name, input.Child.Name
		input.Pod.MoverServiceAccount = ""
		return input, nil
	}
	if r.params.CopyMethod == params.CopyDirect {
		input.ClaimName = r.claim.Name
		var err error
		input.Pin, err = r.nodeOfUse(ctx)
		return input, err
	}
	return input, nil
}

// nodeOfUse is where a volume that can be attached to one node only is in use now.
func (r *sourceRun) nodeOfUse(ctx context.Context) (build.Pin, error) {
	if !volume.SingleNode(r.claim.Spec.AccessModes) {
		return build.Pin{}, nil
	}
	existing, err := r.findJob(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: r.childSet})
	if err != nil || existing.job != nil {
		return build.Pin{}, err
	}
	pods := &corev1.PodList{}
	if err := r.APIReader.List(ctx, pods, client.InNamespace(r.source.Namespace)); err != nil {
		return build.Pin{}, fmt.Errorf("look for the pod that uses claim %s: %w", r.claim.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if volume.UsedBy(pod, r.claim.Name) && pod.Spec.NodeName != "" && pod.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
			return build.Pin{Node: pod.Spec.NodeName, Tolerations: pod.Spec.Tolerations}, nil
		}
	}
	return build.Pin{}, nil
}

// watchMover shows how far the mover has come. It never decides anything: the outcome is the Job's alone.
func (r *sourceRun) watchMover(ctx context.Context, mover moverJob) error {
	if !mover.running() {
		r.synchronizing(mover.whyPending())
		return lookAgain("the mover to start", progressPoll)
	}
	r.synchronizing("the mover is running")
	if r.shown.due(r.source.UID, r.Clock.Now()) {
		r.source.Status.MethodStatus = r.showProgress(ctx, mover, r.source.Status.MethodStatus)
	}
	return lookAgain("the mover", progressPoll)
}

// succeeded records the transfer. All of it is written at once, with the end of the stage, so that it is counted once.
func (r *sourceRun) succeeded(ctx context.Context, result *moverresult.Result) error {
	status := &r.source.Status
	active := status.ActiveSync
	r.recordMover(result)
	status.LastSyncTime = &metav1.Time{Time: r.now}
	duration := r.now.Sub(active.Start.Time).Round(time.Millisecond)
	status.LastSyncDuration = &metav1.Duration{Duration: duration}
	if status.Lineage == nil {
		status.Lineage = &v1alpha1.SourceLineage{}
	}
	status.Lineage.ReplicationID = r.source.Spec.ReplicationID
	status.Lineage.Seq = active.Seq
	if result.Peer != nil && result.Peer.SourceVolumeID != "" {
		status.Lineage.PeerVolumeID = result.Peer.SourceVolumeID
	}
	status.Retry = nil
	status.MethodStatus = withoutProgress(status.MethodStatus)
	maps.Copy(status.MethodStatus, map[string]string{
		"bytesSent":     strconv.FormatInt(result.WireSent, 10),
		"bytesMatched":  strconv.FormatInt(result.MatchedBytes, 10),
		"files":         strconv.FormatInt(result.FilesTotal, 10),
		"seq":           strconv.FormatInt(active.Seq, 10),
		"sourcePV":      status.SourceVolume.PVName,
		"engineVersion": result.EngineVersion,
		"protocol":      result.Protocol,
	})
	acknowledge(status, active.Requests)
	if active.FinalSyncID != "" && status.FinalSync != nil {
		status.FinalSync.Phase, status.FinalSync.Completed = v1alpha1.ReasonCompleted, &metav1.Time{Time: r.now}
	}
	r.set.True(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonVerified, "the peer has confirmed the transfer")
	if err := r.endSync(ctx, outcomeSucceeded); err != nil {
		return err
	}
	metrics.Success(r.labels(), r.now, duration, result.WireSent, result.MatchedBytes)
	r.note(r.source, corev1.EventTypeNormal, "TransferCompleted", "EndSync",
		"sync %d: %d bytes sent, %d bytes matched, in %s", active.Seq, result.WireSent, result.MatchedBytes, duration)
	if active.FinalSyncID != "" {
		r.note(r.source, corev1.EventTypeNormal, "FinalSyncCompleted", "EndSync", "final sync %s: the peer has the last state", active.FinalSyncID)
	}
	return nil
}

// recordMover shows the last mover's outcome.
func (r *sourceRun) recordMover(result *moverresult.Result) {
	r.source.Status.LatestMover = latestMover(result)
}

// streak says how often it failed in a row, and what the last mover's cause was: the first line of what is kept of its log.
func streak(retry *v1alpha1.Retry, mover *v1alpha1.MoverResult) string {
	message := fmt.Sprintf("%d failures in a row", retry.Failures)
	if mover != nil {
		cause, _, _ := strings.Cut(mover.LogTail, "\n")
		message += fmt.Sprintf("; exit code %d: %s", mover.ExitCode, cause)
	}
	return message
}

func latestMover(result *moverresult.Result) *v1alpha1.MoverResult {
	words := map[moverresult.Outcome]string{moverresult.OK: "Successful", moverresult.Partial: "Partial", moverresult.Failed: "Failed"}
	// What went wrong comes first, whatever the log was filled with.
	cause := ""
	if result.Outcome != moverresult.OK {
		cause = moverresult.OneLine(result.Summary(), logTailLimit/2) + "\n"
	}
	tail := result.LogTail
	if room := logTailLimit - len(cause); len(tail) > room {
		tail = strings.ToValidUTF8(tail[len(tail)-room:], "")
	}
	tail = strings.TrimSpace(cause + tail)
	return &v1alpha1.MoverResult{Result: words[result.Outcome], ExitCode: int32(result.ExitCode), LogTail: tail}
}

// tryFailed puts another try off, or ends the sync.
func (r *sourceRun) tryFailed(ctx context.Context, f failure) error {
	status := &r.source.Status
	if f.permanent || status.ActiveSync.Try >= r.tries() {
		return r.fail(ctx, f)
	}
	status.ActiveSync.Try++
	tell := r.countFailure(f)
	status.Retry.NextAttempt = &metav1.MicroTime{Time: r.now.Add(r.Options.backoff(status.ActiveSync.Try - 1))}
	if err := r.persist(ctx); err != nil {
		return err
	}
	tell()
	return r.move(ctx)
}

// mendsElsewhere tells of a failure that may be mended without an edit here: the peer's disk, key or version. While a volume
// is fenced, trying again costs less than waiting for somebody to notice.
func (f failure) mendsElsewhere() bool {
	return f.exitCode != moverresult.ExitUsage && f.exitCode != moverresult.ExitIdentity
}

// rejected ends a sync whose objects the API server refuses as invalid: the same ones would be refused again.
func (r *sourceRun) rejected(ctx context.Context, cause error) error {
	return r.fail(ctx, failure{reason: "Rejected", exitCode: 2, text: params.Scrub(cause.Error()), permanent: true})
}

// tries of one sync, all of which read the same copy.
func (r *sourceRun) tries() int32 { return int32(1 + r.params.Retries) }

// countFailure keeps the streak. What it returns tells of the failure, to be called once that is on record; of a streak
// one event tells.
func (r *sourceRun) countFailure(f failure) (tell func()) {
	status := &r.source.Status
	if status.Retry == nil {
		status.Retry = &v1alpha1.Retry{}
	}
	if !f.moverRan {
		status.LatestMover = &v1alpha1.MoverResult{Result: "Failed", ExitCode: f.exitCode, LogTail: moverresult.OneLine(f.text, logTailLimit)}
	}
	status.Retry.Failures++
	first := status.Retry.Failures == 1
	return func() {
		if first {
			r.note(r.source, corev1.EventTypeWarning, "TransferFailed", "EndSync", "%s", f.text)
		}
		metrics.Failure(r.labels(), f.reason)
	}
}

// startPatience is how long a mover may take to start before its try counts as failed: an image that cannot be pulled, a
// secret that does not exist or a pod that nothing schedules would otherwise never be told of.
const startPatience = 10 * time.Minute

// notStarted says why a mover has not started although it had the time; empty while there is hope. The time runs from the
// moment the pod had a node, and not at all while the copy is being made, which may take as long as it takes.
func (r *sourceRun) notStarted(mover moverJob) string {
	copying := r.copied != nil && r.copied.Status.Phase != corev1.ClaimBound
	if mover.started() || copying || r.now.Sub(mover.waitingSince()) < startPatience {
		return ""
	}
	return fmt.Sprintf("the mover did not start within %v: %s", startPatience, mover.whyPending())
}

// fail ends the sync. What it was to serve is kept: a later one serves it.
func (r *sourceRun) fail(ctx context.Context, f failure) error {
	status := &r.source.Status
	tell := r.countFailure(f)
	permanent := f.permanent && (status.ActiveSync.FinalSyncID == "" || !f.mendsElsewhere())
	status.Retry.Permanent = permanent
	status.Retry.Generation = r.source.Generation
	status.Retry.Requests = status.ActiveSync.Requests
	status.Retry.AttemptID = status.ActiveSync.AttemptID
	status.Retry.NextAttempt = nil
	if !permanent {
		status.Retry.NextAttempt = &metav1.MicroTime{Time: r.now.Add(r.Options.backoff(status.Retry.Failures))}
	}
	refused := r.peerRefused(f)
	if err := r.endSync(ctx, outcomeFailed); err != nil {
		return err
	}
	tell()
	if refused {
		r.note(r.source, corev1.EventTypeWarning, "IdentityMismatch", "EndSync", "%s", f.text)
	}
	// Cleaning up needs no place among those that sync.
	r.Limiter.Release(client.ObjectKeyFromObject(r.source))
	return nil
}

// endSync records that only cleaning up is left.
func (r *sourceRun) endSync(ctx context.Context, outcome string) error {
	active := r.source.Status.ActiveSync
	active.Stage, active.Outcome = v1alpha1.StageCleaningUp, outcome
	if outcome == outcomeAbandoned {
		// What it was to serve is still to be served, at once when the ground is back.
		retry := r.source.Status.Retry
		if retry == nil {
			retry = &v1alpha1.Retry{}
		}
		retry.Requests, retry.AttemptID = active.Requests, active.AttemptID
		retry.Permanent, retry.NextAttempt = false, nil
		r.source.Status.Retry = retry
	}
	r.source.Status.MethodStatus = withoutProgress(r.source.Status.MethodStatus)
	return r.persist(ctx)
}

// peerRefused says so where the peer was reached and is not the one it should be.
func (r *sourceRun) peerRefused(f failure) bool {
	switch f.exitCode {
	case 12:
		r.set.False(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonEngineIncompatible, f.text)
	case moverresult.ExitIdentity:
		r.set.False(v1alpha1.ConditionPeerVerified, peerReason(f.reason), f.text)
		return true
	}
	return false
}
