// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/moverresult"
)

// moverJob is what a reconcile knows about the mover Job of a resource.
type moverJob struct {
	job *batchv1.Job
	// pod is the newest of the Job's pods; nil if there is none.
	pod *corev1.Pod
}

// finished tells whether the Job will run no more pod.
func (m moverJob) finished() bool {
	return m.condition(batchv1.JobComplete) != nil || m.condition(batchv1.JobFailed) != nil
}

// condition of the Job that is true; nil if none is.
func (m moverJob) condition(kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, condition := range m.job.Status.Conditions {
		if condition.Type == kind && condition.Status == corev1.ConditionTrue {
			return &m.job.Status.Conditions[i]
		}
	}
	return nil
}

// result of a finished Job. What the mover wrote counts only together with its exit code, which is kubelet's word.
func (m moverJob) result(role moverresult.Role) *moverresult.Result {
	terminated := m.terminated()
	if terminated == nil {
		if m.condition(batchv1.JobComplete) != nil {
			return moverresult.FromExit(role, 0, "")
		}
		// The pod is gone; of a permanent failure the Job itself keeps the kind.
		failed := m.condition(batchv1.JobFailed)
		result := moverresult.FromExit(role, 1, "PodLost")
		if failed != nil {
			result.Message = moverresult.OneLine(failed.Reason+": "+failed.Message, 512)
		}
		return result
	}
	result, err := moverresult.Parse(terminated.Message)
	if err != nil || result.ExitCode != int(terminated.ExitCode) || result.Role != role {
		result = moverresult.FromExit(role, int(terminated.ExitCode), terminated.Reason)
		if err != nil && !errors.Is(err, moverresult.ErrNoResult) {
			result.Message = moverresult.OneLine(err.Error(), 512)
		}
	}
	return result
}

// permanent tells whether a retry would fail in the same way. Where the pod is gone, the Job still knows that its failure
// policy ended it.
func (m moverJob) permanent(result *moverresult.Result) bool {
	failed := m.condition(batchv1.JobFailed)
	return moverresult.Permanent(result.ExitCode) || (failed != nil && failed.Reason == batchv1.JobReasonPodFailurePolicy)
}

// state of the mover's container in the newest pod; empty where there is none.
func (m moverJob) state() corev1.ContainerState {
	if m.pod != nil {
		for _, status := range m.pod.Status.ContainerStatuses {
			if status.Name == build.ContainerName {
				return status.State
			}
		}
	}
	return corev1.ContainerState{}
}

func (m moverJob) terminated() *corev1.ContainerStateTerminated { return m.state().Terminated }

// running tells whether the mover's process runs now.
func (m moverJob) running() bool {
	return m.state().Running != nil && m.pod.Status.PodIP != ""
}

// started tells whether the mover's process has begun in the newest pod.
func (m moverJob) started() bool {
	state := m.state()
	return state.Running != nil || state.Terminated != nil
}

// waitingSince is when the newest pod got its node; without one, when there was something to wait for.
func (m moverJob) waitingSince() time.Time {
	if m.pod == nil {
		return m.job.CreationTimestamp.Time
	}
	for _, condition := range m.pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return m.pod.CreationTimestamp.Time
}

// whyPending says why the pod does not run yet, as far as its status tells.
func (m moverJob) whyPending() string {
	if m.pod == nil {
		return "the Job has no pod yet"
	}
	for _, condition := range m.pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "the pod cannot be scheduled: " + moverresult.OneLine(condition.Message, 256)
		}
	}
	for _, status := range m.pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" {
			return "the container waits: " + moverresult.OneLine(waiting.Reason+" "+waiting.Message, 256)
		}
	}
	return "the pod waits for its volumes and the key secret, or starts"
}

// ensureJob makes the Job of an input, or finds it. A Job that was made from other inputs, or that makes another try, is
// removed first, pods and all, so that two movers never run at once; then waiting is returned.
func (b *base) ensureJob(ctx context.Context, input build.JobInput) (moverJob, error) {
	wanted := build.Job(input)
	found, err := b.findJob(ctx, client.ObjectKeyFromObject(wanted))
	if err != nil {
		return moverJob{}, err
	}
	if found.job != nil && !sameJob(found.job, wanted) {
		if err := b.awaitGone(ctx, input.Child.Owner.(client.Object), &batchv1.Job{}, client.ObjectKeyFromObject(wanted)); err != nil {
			return moverJob{}, err
		}
		found.job = nil
	}
	if found.job == nil {
		if err := b.noOtherMover(ctx, input.Child); err != nil {
			return moverJob{}, err
		}
		if err := apply(ctx, b.Client, wanted); err != nil {
			return moverJob{}, err
		}
		return moverJob{job: wanted}, nil
	}
	if !found.job.DeletionTimestamp.IsZero() {
		return moverJob{}, waitFor("the deletion of Job " + wanted.Name)
	}
	return found, nil
}

// noOtherMover waits until no pod of an earlier Job of these children runs: whoever deletes a Job by hand may leave its pod
// behind, and two movers must not work on one volume.
func (b *base) noOtherMover(ctx context.Context, child build.Child) error {
	pods := &corev1.PodList{}
	err := b.APIReader.List(ctx, pods, client.InNamespace(child.Namespace), client.MatchingLabels{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelChild: child.Set,
	})
	if err != nil {
		return fmt.Errorf("look for an earlier mover: %w", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return lookAgain("the end of an earlier mover, pod "+pod.Name, deletionPoll)
		}
	}
	return nil
}

// sameJob tells whether a Job was made from the same inputs for the same try.
func sameJob(found, wanted *batchv1.Job) bool {
	for _, annotation := range []string{build.AnnotationAttempt, v1alpha1.AnnotationInputHash} {
		if found.Annotations[annotation] != wanted.Annotations[annotation] {
			return false
		}
	}
	return true
}

// findJob reads a Job and its newest pod. The Job is read uncached: whether one runs decides whether another starts.
func (b *base) findJob(ctx context.Context, key client.ObjectKey) (moverJob, error) {
	job := &batchv1.Job{}
	if err := b.APIReader.Get(ctx, key, job); err != nil {
		return moverJob{}, client.IgnoreNotFound(err)
	}
	found := moverJob{job: job}
	if err := b.findPod(ctx, b.Client, &found); err != nil {
		return moverJob{}, err
	}
	if found.finished() && found.terminated() == nil {
		// The Job was read past the cache and may be ahead of it: what the mover left must not be missed.
		return found, b.findPod(ctx, b.APIReader, &found)
	}
	return found, nil
}

// findPod finds the newest pod of a Job.
func (b *base) findPod(ctx context.Context, reader client.Reader, found *moverJob) error {
	job := found.job
	pods := &corev1.PodList{}
	err := reader.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	found.pod = nil
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Labels[batchv1.ControllerUidLabel] != string(job.UID) {
			continue
		}
		if found.pod == nil || found.pod.CreationTimestamp.Before(&pod.CreationTimestamp) {
			found.pod = pod
		}
	}
	return nil
}

// awaitGone deletes a child and returns nil once it is no more, waiting until then.
func (b *base) awaitGone(ctx context.Context, owner client.Object, object client.Object, key client.ObjectKey) error {
	gone, err := removal{client: b.Client, reader: b.APIReader, owner: owner}.gone(ctx, key, object)
	if apierrors.IsNotFound(err) || (err == nil && gone) {
		return nil
	}
	if err != nil {
		return err
	}
	return lookAgain(fmt.Sprintf("the deletion of %T %s", object, key), deletionPoll)
}
