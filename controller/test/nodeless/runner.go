// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// podRunner is the part of the kubelet that runs pods and reports on them. Whether a Job succeeded, and whether
// there is another pod, the real Job controller concludes from these reports.
type podRunner struct {
	*Node
	ended chan event.GenericEvent

	mutex      sync.Mutex
	executions map[types.UID]*execution
}

func newPodRunner(node *Node) *podRunner {
	return &podRunner{Node: node, ended: make(chan event.GenericEvent, 64), executions: map[types.UID]*execution{}}
}

func (r *podRunner) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("pods").WithOptions(anyName).
		For(&corev1.Pod{}).
		WatchesRawSource(source.Channel(r.ended, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// Reconcile takes one pod a step further: made ready, started, reported on, ended.
func (r *podRunner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, request.NamespacedName, pod); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.killOthers(request.NamespacedName, "")
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.killOthers(request.NamespacedName, pod.UID)
	if !r.selects(pod) || !slices.Contains(r.names, pod.Spec.NodeName) {
		return ctrl.Result{}, nil
	}
	if pod.DeletionTimestamp != nil {
		return r.terminate(ctx, pod)
	}
	if finished(pod) {
		return ctrl.Result{}, nil
	}
	current := r.execution(pod)
	if wait, limited := deadline(pod); limited && current.started() && !current.hasEnded() {
		if wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		return r.askToEnd(pod, current), nil
	}
	if !current.started() {
		if wait := time.Until(current.notBefore); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, r.reportWaiting(ctx, pod, "ContainerCreating", "delayed by the test")
		}
		if err := r.start(ctx, pod, current); err != nil {
			var not *waiting
			if !errors.As(err, &not) {
				return ctrl.Result{}, err
			}
			return ctrl.Result{RequeueAfter: retryDelay}, r.reportWaiting(ctx, pod, not.reason, not.cause.Error())
		}
	}
	if err := r.report(ctx, pod, current); err != nil {
		return ctrl.Result{}, err
	}
	if wait, limited := deadline(pod); limited && !finished(pod) {
		return ctrl.Result{RequeueAfter: max(wait, retryDelay)}, nil
	}
	return ctrl.Result{}, nil
}

// deadline is how long a pod may still be active, where it may not be for ever.
func deadline(pod *corev1.Pod) (time.Duration, bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return 0, false
	}
	return time.Until(pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)), true
}

// askToEnd sends SIGTERM, and SIGKILL after the grace period. It says when to look again at a program that still runs.
func (r *podRunner) askToEnd(pod *corev1.Pod, current *execution) ctrl.Result {
	seconds := ptr.Deref(pod.DeletionGracePeriodSeconds, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30))
	// A hanging or stubborn program gets no event, so look again at the end of the grace period.
	if wait := time.Until(current.askToEnd().Add(time.Duration(seconds) * time.Second)); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}
	}
	current.signal(syscall.SIGKILL)
	return ctrl.Result{RequeueAfter: retryDelay}
}

// terminate ends a pod that is being deleted as the kubelet does: SIGTERM, SIGKILL after the grace period, last
// report, and only then the object.
func (r *podRunner) terminate(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	current := r.existing(pod.UID)
	switch {
	case current == nil || !current.started():
		if err := r.reportNeverStarted(ctx, pod); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	case !current.hasEnded():
		return r.askToEnd(pod, current), nil
	case !finished(pod):
		if err := r.report(ctx, pod, current); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	now := client.GracePeriodSeconds(0)
	return ctrl.Result{}, client.IgnoreNotFound(r.client.Delete(ctx, pod, now, client.Preconditions{UID: &pod.UID}))
}

// start makes the container ready and executes it, or does what a hook wants instead.
func (r *podRunner) start(ctx context.Context, pod *corev1.Pod, current *execution) error {
	prepared, err := r.prepare(ctx, pod, current.address)
	if err != nil {
		return err
	}
	record := Run{
		Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Labels: maps.Clone(pod.Labels),
		Job:    pod.Labels["batch.kubernetes.io/job-name"],
		Volume: prepared.volume, ReadOnly: prepared.readOnly, PodIP: current.address,
		Environment: prepared.environment, Start: time.Now(),
	}
	notify := func() {
		// The manager may be gone by now, and then nobody reads.
		select {
		case r.ended <- event.GenericEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: current.key.Namespace, Name: current.key.Name,
		}}}:
		case <-time.After(time.Minute):
		}
	}
	return current.start(&r.journal, record, prepared, r.plane.Environment(), notify)
}

// execution gives the state of a pod's only container, asking the hook when the pod is seen first.
func (r *podRunner) execution(pod *corev1.Pod) *execution {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if current := r.executions[pod.UID]; current != nil {
		return current
	}
	current := &execution{
		key: client.ObjectKeyFromObject(pod), address: r.plane.Loopback.PodIP(), ended: make(chan struct{}),
	}
	if hook := r.hooks.get().Run; hook != nil {
		current.injection = hook(pod)
	}
	current.notBefore = time.Now().Add(current.injection.Delay)
	r.executions[pod.UID] = current
	return current
}

func (r *podRunner) existing(uid types.UID) *execution {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.executions[uid]
}

// killOthers ends what runs for pods of that name but another UID: they were deleted by force.
func (r *podRunner) killOthers(key client.ObjectKey, uid types.UID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for other, current := range r.executions {
		if current.key == key && other != uid {
			current.signal(syscall.SIGKILL)
			delete(r.executions, other)
		}
	}
}

// killAll ends everything and waits for it.
func (r *podRunner) killAll() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, current := range r.executions {
		if current.started() {
			current.signal(syscall.SIGKILL)
			<-current.ended
		}
	}
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func labelsOf(pod *corev1.Pod) labels.Set { return labels.Set(pod.Labels) }
