// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"testing"
	"time"
)

func TestJitterBounds(t *testing.T) {
	tick := time.Unix(1_800_000_000, 0)
	tests := map[string]struct{ interval, most, bound time.Duration }{
		"a tenth of the interval": {10 * time.Second, time.Minute, time.Second},
		"the setting":             {24 * time.Hour, 30 * time.Second, 30 * time.Second},
		"off":                     {time.Hour, 0, 0},
		"no interval":             {0, time.Minute, 0},
		"negative":                {time.Hour, -time.Second, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for n := range 500 {
				uid := fmt.Sprintf("uid-%d", n)
				got := Jitter(uid, tick, tc.interval, tc.most)
				if got < 0 || got > 0 && got >= tc.bound {
					t.Fatalf("%s is not below %s", got, tc.bound)
				}
				if again := Jitter(uid, tick.In(time.FixedZone("x", 3600)), tc.interval, tc.most); again != got {
					t.Fatalf("%s, then %s", got, again)
				}
			}
		})
	}
}

// A thousand schedules with one tick are spread: each tenth of the range gets its share.
func TestJitterSpreads(t *testing.T) {
	const bound = 60 * time.Second
	var tenths [10]int
	for n := range 1000 {
		got := Jitter(fmt.Sprintf("0b7f6d1e-5d52-4a55-9a36-%012d", n), time.Unix(1_800_000_000, 0), time.Hour, bound)
		tenths[got*10/bound]++
	}
	for i, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("tenth %d has %d of 1000", i, n)
		}
	}
}
