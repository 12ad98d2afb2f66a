// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/test/nodeless"
)

// injections are what each test wants to happen with its own pods, by its namespace: tests share the node.
var injections sync.Map // namespace -> func(*corev1.Pod) nodeless.Injection

// inject decides what happens with the movers of this world from now on; nil: nothing special.
func (w *world) inject(decide func(*corev1.Pod) nodeless.Injection) {
	if decide == nil {
		injections.Delete(w.namespace)
		return
	}
	injections.Store(w.namespace, decide)
}

// setHooks makes the node ask the tests.
func (s *site) setHooks(snapshotDelay time.Duration) {
	s.node.SetHooks(nodeless.Hooks{SnapshotDelay: snapshotDelay, Run: func(pod *corev1.Pod) nodeless.Injection {
		parts := strings.Split(pod.Annotations[v1alpha1.AnnotationOwner], "/")
		if len(parts) != 3 {
			return nodeless.Injection{}
		}
		decide, there := injections.Load(parts[1])
		if !there {
			return nodeless.Injection{}
		}
		return decide.(func(*corev1.Pod) nodeless.Injection)(pod)
	}})
}

// slowly lets every mover of this world start late.
func slowly(delay time.Duration) func(*corev1.Pod) nodeless.Injection {
	return func(*corev1.Pod) nodeless.Injection { return nodeless.Injection{Delay: delay} }
}
