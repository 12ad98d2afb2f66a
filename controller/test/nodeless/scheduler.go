// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The binder waits for this annotation where a class binds with the first consumer.
const selectedNodeAnnotation = "volume.kubernetes.io/selected-node"

// scheduler binds pods to the first node that their affinity allows, once their claims are bound.
type scheduler struct{ *Node }

func (s *scheduler) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("scheduler").WithOptions(anyName).
		For(&corev1.Pod{}).Complete(s)
}

// Reconcile tries to bind one pod.
func (s *scheduler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := s.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.selects(pod) || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return ctrl.Result{}, nil
	}
	name, err := s.pickNode(ctx, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if name == "" {
		return s.unschedulable(ctx, pod, "no node matches the pod's affinity")
	}
	bound, err := s.claimsBound(ctx, pod, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !bound {
		return s.unschedulable(ctx, pod, "a claim is missing or not bound")
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: name},
	}
	return ctrl.Result{}, client.IgnoreNotFound(s.client.SubResource("binding").Create(ctx, pod, binding))
}

func (n *Node) selects(pod *corev1.Pod) bool { return n.pods.Matches(labelsOf(pod)) }

func (s *scheduler) pickNode(ctx context.Context, pod *corev1.Pod) (string, error) {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, name := range s.names {
		node := &corev1.Node{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return "", err
		}
		matches, err := required.Match(node)
		if err != nil {
			return "", err
		}
		if matches && !node.Spec.Unschedulable {
			return name, nil
		}
	}
	return "", nil
}

// claimsBound says whether all claims of the pod are bound, and names the node to those that wait for a consumer.
func (s *scheduler) claimsBound(ctx context.Context, pod *corev1.Pod, node string) (bool, error) {
	all := true
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		if err := s.client.Get(ctx, key, claim); err != nil {
			if client.IgnoreNotFound(err) == nil {
				all = false
				continue
			}
			return false, err
		}
		if claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
			continue
		}
		all = false
		if err := s.selectNode(ctx, claim, node); err != nil {
			return false, err
		}
	}
	return all, nil
}

func (s *scheduler) selectNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	if claim.Spec.VolumeName != "" || claim.Annotations[selectedNodeAnnotation] != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	class := &storagev1.StorageClass{}
	err := s.client.Get(ctx, client.ObjectKey{Name: ptr.Deref(claim.Spec.StorageClassName, "")}, class)
	if err != nil || ptr.Deref(class.VolumeBindingMode, "") != storagev1.VolumeBindingWaitForFirstConsumer {
		return client.IgnoreNotFound(err)
	}
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[selectedNodeAnnotation] = node
	return s.client.Patch(ctx, claim, client.MergeFrom(before))
}

// unschedulable says once why the pod waits, and looks again soon.
func (s *scheduler) unschedulable(ctx context.Context, pod *corev1.Pod, why string) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: retryDelay}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Message == why {
			return again, nil
		}
	}
	before := pod.DeepCopy()
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, why)
	return again, client.IgnoreNotFound(s.client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)))
}
