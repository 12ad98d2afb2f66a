// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func key(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("s%d", n)}
}

// drain wakes all who are granted a slot, in order, as Start would.
func drain(l *Limiter) []types.NamespacedName {
	var woken []types.NamespacedName
	for {
		key, some := l.nextWake()
		if !some {
			return woken
		}
		woken = append(woken, key)
	}
}

func TestLimit(t *testing.T) {
	l := New(2)
	if !l.Acquire(key("a", 1)) || !l.Acquire(key("a", 2)) {
		t.Fatal("a free slot was refused")
	}
	for range 2 { // asking again changes nothing
		if l.Acquire(key("a", 3)) {
			t.Fatal("a third sync may run")
		}
	}
	if !l.Acquire(key("a", 1)) {
		t.Error("a running sync was refused when it asked again")
	}
	if running, waiting := l.Counts(); running != 2 || waiting != 1 {
		t.Errorf("%d running, %d waiting", running, waiting)
	}
	l.Release(key("a", 1))
	if woken := drain(l); !slices.Equal(woken, []types.NamespacedName{key("a", 3)}) {
		t.Errorf("woken: %v", woken)
	}
	if l.Acquire(key("b", 1)) {
		t.Error("a newcomer took the slot of one that was woken")
	}
	if !l.Acquire(key("a", 3)) {
		t.Error("the one that was woken was refused")
	}
}

func TestNoLimit(t *testing.T) {
	l := New(0)
	for n := range 1000 {
		if !l.Acquire(key("a", n)) {
			t.Fatal("refused without a limit")
		}
	}
	if len(drain(l)) != 0 {
		t.Error("one that was admitted at once was woken")
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	l := New(1)
	l.Acquire(key("z", 0))
	for n := range 4 {
		l.Acquire(key("a", n))
	}
	l.Acquire(key("b", 0))
	l.Acquire(key("c", 0))
	l.Acquire(key("b", 1))
	var order []string
	running := key("z", 0)
	for range 7 {
		l.Release(running)
		woken := drain(l)
		if len(woken) != 1 || !l.Acquire(woken[0]) {
			t.Fatalf("woken: %v", woken)
		}
		running = woken[0]
		order = append(order, running.Namespace+running.Name)
	}
	want := []string{"as0", "bs0", "cs0", "as1", "bs1", "as2", "as3"}
	if !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

func TestAdoptExceedsTheLimit(t *testing.T) {
	l := New(1)
	l.Adopt(key("a", 1))
	l.Adopt(key("a", 2))
	if !l.Acquire(key("a", 1)) || !l.Acquire(key("a", 2)) || l.Acquire(key("a", 3)) {
		t.Error("adopted syncs run, others wait")
	}
	l.Release(key("a", 1))
	if len(drain(l)) != 0 {
		t.Error("woken above the limit")
	}
	l.Release(key("a", 2))
	if len(drain(l)) != 1 {
		t.Error("nobody woken below the limit")
	}
}

func TestThoseWhoVanish(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	l := newWithClock(1, fake)
	l.Acquire(key("a", 0))
	for n := 1; n <= 3; n++ {
		l.Acquire(key("a", n))
	}
	l.Release(key("a", 1)) // deleted while it waits
	l.Release(key("a", 0))
	if woken := drain(l); !slices.Equal(woken, []types.NamespacedName{key("a", 2)}) {
		t.Fatalf("woken: %v", woken)
	}
	fake.Step(claimTime + time.Second) // it never comes
	l.mu.Lock()
	l.expire()
	l.mu.Unlock()
	if woken := drain(l); !slices.Equal(woken, []types.NamespacedName{key("a", 3)}) {
		t.Fatalf("woken after the claim time: %v", woken)
	}
	l.Release(key("a", 3)) // deleted after it was woken
	if running, waiting := l.Counts(); running != 0 || waiting != 0 {
		t.Errorf("%d running, %d waiting", running, waiting)
	}
}

func TestStartDeliversAndEnds(t *testing.T) {
	l := New(1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	l.Acquire(key("a", 0))
	l.Acquire(key("a", 1))
	l.Release(key("a", 0))
	select {
	case e := <-l.Wake():
		if e.Object.GetName() != "s1" || e.Object.GetNamespace() != "a" {
			t.Errorf("event for %s/%s", e.Object.GetNamespace(), e.Object.GetName())
		}
	case <-time.After(5 * time.Second):
		t.Fatal("no event")
	}
	l.Release(key("a", 1))
	l.Acquire(key("a", 2))
	l.Acquire(key("a", 3))
	l.Release(key("a", 2)) // an event that nobody reads
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Start did not end")
	}
}

// Whatever the order of calls, the limit holds and at the end everybody has run once.
func TestManyAtOnce(t *testing.T) {
	const most, syncs = 3, 200
	l := New(most)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = l.Start(ctx) }()
	var mu sync.Mutex
	running, done := 0, 0
	finished := make(chan struct{})
	reconcile := func(k types.NamespacedName) {
		if !l.Acquire(k) {
			return
		}
		mu.Lock()
		running++
		if running > most {
			t.Errorf("%d at once", running)
		}
		mu.Unlock()
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		mu.Lock()
		running--
		done++
		last := done == syncs
		mu.Unlock()
		l.Release(k)
		if last {
			close(finished)
		}
	}
	go func() {
		for {
			select {
			case e := <-l.Wake():
				go reconcile(types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()})
			case <-ctx.Done():
				return
			}
		}
	}()
	for n := range syncs {
		go reconcile(key(fmt.Sprint(n%5), n))
	}
	select {
	case <-finished:
	case <-time.After(30 * time.Second):
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("only %d of %d ran", done, syncs)
	}
}
