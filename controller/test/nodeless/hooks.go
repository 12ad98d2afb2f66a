// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
)

// Hooks let a test make things fail or wait. A nil function changes nothing. They are called from several
// goroutines.
type Hooks struct {
	// Provision is asked before a volume is made; an error leaves the claim Pending, and it is asked again.
	Provision func(*corev1.PersistentVolumeClaim) error
	// Snapshot is asked before a snapshot is cut; an error goes into the snapshot's status, and it is
	// asked again.
	Snapshot func(*snapshotv1.VolumeSnapshot) error
	// SnapshotDelay is the time between the cut of a snapshot and its readiness.
	SnapshotDelay time.Duration
	// Run is asked once for each pod before its program is started.
	Run func(*corev1.Pod) Injection
}

// Injection changes what happens with one pod.
type Injection struct {
	// Delay is waited before the start; the pod stays Pending.
	Delay time.Duration
	// Skip runs nothing: the container ends at once with ExitCode and Message.
	Skip     bool
	ExitCode int32
	Message  string
	// Hang runs nothing either, but the container ends only when its pod is deleted, with 143.
	Hang bool
	// Environment is added to the container's and wins.
	Environment []string
}

// hooks is Hooks that can be changed while in use.
type hooks struct {
	mutex   sync.Mutex
	current Hooks
}

func (h *hooks) set(value Hooks) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.current = value
}

func (h *hooks) get() Hooks {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.current
}

// SetHooks replaces the hooks.
func (n *Node) SetHooks(value Hooks) { n.hooks.set(value) }
