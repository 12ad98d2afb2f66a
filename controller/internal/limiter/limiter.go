// SPDX-License-Identifier: Apache-2.0

// Package limiter bounds how many syncs run at once, fairly: namespaces take turns, and within one it is first come,
// first served.
//
// It fits a level-based controller. Nothing is handed over by an event alone: a reconcile asks with Acquire as often as
// it likes and gets the same answer until something changed; an event only says that asking again is worthwhile. The state
// is in memory; after a restart the controller tells with Adopt which syncs are running.
package limiter

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// claimTime is how long a slot is kept for a waiter that was woken. A reconcile follows within milliseconds; one that
// does not come belongs to a resource that is gone, paused or changed, and the next in line gets the slot.
const claimTime = 30 * time.Second

// Limiter hands out slots. Its methods may be called by several goroutines at once and never block.
type Limiter struct {
	max   int
	clock clock.WithTicker

	mu     sync.Mutex
	active map[types.NamespacedName]struct{}
	// granted are slots kept for waiters that were woken, until the time given.
	granted map[types.NamespacedName]time.Time
	queue   fairQueue
	// wake are the waiters to be woken, in order.
	wake []types.NamespacedName

	changed chan struct{}
	events  chan event.GenericEvent
}

// New makes a Limiter for at most max syncs at once; 0 or less means no limit.
func New(max int) *Limiter { return newWithClock(max, clock.RealClock{}) }

func newWithClock(max int, c clock.WithTicker) *Limiter {
	return &Limiter{
		max: max, clock: c,
		active:  map[types.NamespacedName]struct{}{},
		granted: map[types.NamespacedName]time.Time{},
		queue:   newFairQueue(),
		changed: make(chan struct{}, 1),
		events:  make(chan event.GenericEvent),
	}
}

// Acquire tells whether the sync of key may run. If it may not yet, key is in line, and an event follows when its turn has
// come. Asking again changes nothing.
func (l *Limiter) Acquire(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, running := l.active[key]; running {
		return true
	}
	if _, kept := l.granted[key]; kept {
		delete(l.granted, key)
		l.active[key] = struct{}{}
		return true
	}
	l.queue.push(key)
	l.fill()
	if _, kept := l.granted[key]; !kept {
		return false
	}
	// It is this one's turn right now: no event is needed.
	delete(l.granted, key)
	l.dropWake(key)
	l.active[key] = struct{}{}
	return true
}

// Adopt counts the sync of key as running, whatever the limit: for syncs found at the start of the controller, before the
// first Acquire.
func (l *Limiter) Adopt(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.remove(key)
	delete(l.granted, key)
	l.dropWake(key)
	l.active[key] = struct{}{}
}

// Release gives back whatever key has: its slot, or its place in line. It is called at the end of a sync and when the
// resource is deleted, paused or no longer wants to sync; calling it for nothing does no harm.
func (l *Limiter) Release(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, key)
	delete(l.granted, key)
	l.queue.remove(key)
	l.dropWake(key)
	l.fill()
}

// Counts tells how many syncs run and how many wait.
func (l *Limiter) Counts() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.active), len(l.granted) + l.queue.len()
}

// Wake is for a controller-runtime channel source: each event names a resource whose turn has come. Only one reader.
func (l *Limiter) Wake() <-chan event.GenericEvent { return l.events }

// fill gives free slots to those in line and notes that they are to be woken. The caller holds mu.
func (l *Limiter) fill() {
	for l.max <= 0 || len(l.active)+len(l.granted) < l.max {
		key, some := l.queue.pop()
		if !some {
			return
		}
		l.granted[key] = l.clock.Now().Add(claimTime)
		l.wake = append(l.wake, key)
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}

// expire takes back slots that nobody came for. The caller holds mu.
func (l *Limiter) expire() {
	for key, until := range l.granted {
		if l.clock.Now().After(until) {
			delete(l.granted, key)
			l.dropWake(key)
		}
	}
	l.fill()
}

func (l *Limiter) dropWake(key types.NamespacedName) {
	for i, waiting := range l.wake {
		if waiting == key {
			l.wake = append(l.wake[:i], l.wake[i+1:]...)
			return
		}
	}
}

// Start delivers events until the context ends; it is a controller-runtime Runnable. Without it Acquire still is right,
// but nobody is woken.
func (l *Limiter) Start(ctx context.Context) error {
	ticker := l.clock.NewTicker(claimTime / 3)
	defer ticker.Stop()
	for {
		if key, some := l.nextWake(); some {
			select {
			case l.events <- event.GenericEvent{Object: named(key)}:
			case <-ctx.Done():
				return nil
			}
			continue
		}
		select {
		case <-l.changed:
		case <-ticker.C():
			l.mu.Lock()
			l.expire()
			l.mu.Unlock()
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Limiter) nextWake() (types.NamespacedName, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wake) == 0 {
		return types.NamespacedName{}, false
	}
	key := l.wake[0]
	l.wake = l.wake[1:]
	return key, true
}

// named is an object of which an event handler needs name and namespace only.
func named(key types.NamespacedName) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
