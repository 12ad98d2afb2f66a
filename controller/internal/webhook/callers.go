// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Bounds of what is remembered in memory.
const (
	maxCallers  = 10000
	maxAccepted = 16
	// forgetAfter is longer than any rate limiter needs to be full again, and than a client goes on to repeat a request.
	forgetAfter = 10 * time.Minute
)

// callers remembers, for each Source that was triggered lately, how often, and which keyed requests were accepted: the
// Source itself names only the last. Memory is bounded; what is forgotten costs one sync too many at most.
type callers struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	byUID map[types.UID]*caller
}

type caller struct {
	limit    *rate.Limiter
	accepted []string
	last     time.Time
}

func newCallers(c clock.PassiveClock) *callers {
	return &callers{clock: c, byUID: map[types.UID]*caller{}}
}

// allow tells whether the Source may be triggered once more: one a second.
func (c *callers) allow(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.get(uid)
	return entry != nil && entry.limit.AllowN(c.clock.Now(), 1)
}

// accepted tells whether the request was accepted lately.
func (c *callers) accepted(uid types.UID, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.byUID[uid]
	if !found {
		return false
	}
	for _, have := range entry.accepted {
		if have == id {
			return true
		}
	}
	return false
}

func (c *callers) remember(uid types.UID, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.get(uid)
	if entry == nil {
		return
	}
	entry.accepted = append(entry.accepted, id)
	if len(entry.accepted) > maxAccepted {
		entry.accepted = entry.accepted[1:]
	}
}

// get finds or makes an entry; nil if there are too many even without the old ones. The caller holds mu.
func (c *callers) get(uid types.UID) *caller {
	now := c.clock.Now()
	entry, found := c.byUID[uid]
	if !found {
		if len(c.byUID) >= maxCallers {
			c.forget(now)
		}
		if len(c.byUID) >= maxCallers {
			return nil
		}
		entry = &caller{limit: rate.NewLimiter(1, 1)}
		c.byUID[uid] = entry
	}
	entry.last = now
	return entry
}

func (c *callers) forget(now time.Time) {
	for uid, entry := range c.byUID {
		if now.Sub(entry.last) > forgetAfter {
			delete(c.byUID, uid)
		}
	}
}
