// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reportWaiting says that the container is not started yet, and why.
func (r *podRunner) reportWaiting(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	return r.patchStatus(ctx, pod, func() {
		pod.Status.Phase = corev1.PodPending
		setPodCondition(pod, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	})
}

// report says that the container runs, or how it ended.
func (r *podRunner) report(ctx context.Context, pod *corev1.Pod, current *execution) error {
	container := &pod.Spec.Containers[0]
	state := current.outcome(container)
	running := state.Running != nil
	return r.patchStatus(ctx, pod, func() {
		ready := corev1.ConditionFalse
		switch {
		case running:
			pod.Status.Phase, ready = corev1.PodRunning, corev1.ConditionTrue
		case state.Terminated.ExitCode == 0:
			pod.Status.Phase = corev1.PodSucceeded
		default:
			pod.Status.Phase = corev1.PodFailed
		}
		setPodCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", "")
		setPodCondition(pod, corev1.ContainersReady, ready, "", "")
		setPodCondition(pod, corev1.PodReady, ready, "", "")
		if pod.Status.StartTime == nil {
			pod.Status.StartTime = ptr.To(timestamp(current.run.Start))
		}
		pod.Status.HostIP, pod.Status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
		pod.Status.PodIP, pod.Status.PodIPs = current.address, []corev1.PodIP{{IP: current.address}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, ImageID: container.Image, State: state,
			Ready: running, Started: &running, ContainerID: current.identifier(),
		}}
	})
}

// reportNeverStarted closes the account of a pod that is deleted before its start: the Job controller counts a
// deleted pod only when its phase is final.
func (r *podRunner) reportNeverStarted(ctx context.Context, pod *corev1.Pod) error {
	if finished(pod) {
		return nil
	}
	return r.patchStatus(ctx, pod, func() { pod.Status.Phase = corev1.PodFailed })
}

// patchStatus sends what the change changed, and nothing if that is nothing.
func (r *podRunner) patchStatus(ctx context.Context, pod *corev1.Pod, change func()) error {
	before := pod.DeepCopy()
	change()
	patch := client.StrategicMergeFrom(before)
	if data, err := patch.Data(pod); err != nil || string(data) == "{}" {
		return err
	}
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, pod, patch))
}

// setPodCondition adds or changes a condition; its time changes only with its status.
func setPodCondition(
	pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string,
) {
	wanted := corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
	for index := range pod.Status.Conditions {
		if current := &pod.Status.Conditions[index]; current.Type == kind {
			if current.Status == status {
				wanted.LastTransitionTime = current.LastTransitionTime
			}
			wanted.LastProbeTime, wanted.ObservedGeneration = current.LastProbeTime, current.ObservedGeneration
			*current = wanted
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, wanted)
}

// timestamp has the resolution of the API, so that comparing what was sent with what comes back is possible.
func timestamp(moment time.Time) metav1.Time { return metav1.NewTime(moment.Truncate(time.Second)) }
