// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// MaxMissed is where Missed stops to count: more than that says no more than that.
const MaxMissed = 10000

// Missed tells how many ticks there were after since and up to now, at most MaxMissed, and when the last of them was
// (zero without any). It takes milliseconds however long the time in between and however frequent the ticks.
func (s *Schedule) Missed(since, now time.Time) (count int, last time.Time) {
	first := s.Next(since)
	if first.IsZero() || first.After(now) {
		return 0, time.Time{}
	}
	if s.every > 0 {
		more := now.Sub(first) / s.every
		return int(min(more+1, MaxMissed)), first.Add(more * s.every)
	}
	for tick := first; count < MaxMissed && !tick.IsZero() && !tick.After(now); tick = s.Next(tick) {
		last = tick
		count++
	}
	if count == MaxMissed {
		last = s.lastTick(last, now)
	}
	return count, last
}

// lastTick finds the last tick up to now, given an earlier tick, without visiting those in between: a time t lies before
// the last tick exactly if Next(t) is not after now, so the tick is found by halving.
func (s *Schedule) lastTick(earlier, now time.Time) time.Time {
	low, high := earlier.Unix(), now.Unix()
	// Invariant: the last tick is at or after low, and after high there is none up to now.
	for low < high {
		middle := low + (high-low)/2
		next := s.Next(time.Unix(middle, 0))
		if next.IsZero() || next.After(now) {
			high = middle
		} else {
			low = next.Unix()
		}
	}
	return time.Unix(low, 0).In(s.zone)
}
