// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

func TestMissed(t *testing.T) {
	tests := map[string]struct {
		spec, since, now string
		count            int
		last             string
	}{
		"none":              {"@hourly", "2026-03-01T10:00:00Z", "2026-03-01T10:59:59Z", 0, ""},
		"one, on the tick":  {"@hourly", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 1, "2026-03-01T11:00:00Z"},
		"five":              {"*/5 * * * *", "2026-03-01T10:00:00Z", "2026-03-01T10:27:00Z", 5, "2026-03-01T10:25:00Z"},
		"now before since":  {"@hourly", "2026-03-01T10:00:00Z", "2026-02-01T10:00:00Z", 0, ""},
		"seconds, a year":   {"* * * * * *", "2025-03-01T10:00:00Z", "2026-03-01T10:00:00Z", MaxMissed, "2026-03-01T10:00:00Z"},
		"sparse and many":   {"* * 3 * * *", "2025-03-01T10:00:00Z", "2026-03-01T10:00:00Z", MaxMissed, "2026-03-01T03:59:59Z"},
		"every":             {"@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", 6, "2026-01-01T00:09:00Z"},
		"every for a year":  {"@every 1s", "2025-01-01T00:00:00Z", "2026-06-01T00:00:00.5Z", MaxMissed, "2026-06-01T00:00:00Z"},
		"exactly the bound": {"* * * * * *", "2026-03-01T00:00:00Z", "2026-03-01T02:46:40Z", MaxMissed, "2026-03-01T02:46:40Z"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			count, last := parse(t, tc.spec, "Europe/Lisbon").Missed(at(tc.since), at(tc.now))
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
			if count != tc.count || (tc.last == "") != last.IsZero() || tc.last != "" && !last.Equal(at(tc.last)) {
				t.Errorf("got %d, %s, want %d, %s", count, last, tc.count, tc.last)
			}
		})
	}
}

// Restarts do not move ticks: whatever moment one starts to look at, the next tick is one of the same set.
func TestTicksAreStable(t *testing.T) {
	for _, spec := range []string{"@every 47s", "*/7 * * * * *"} {
		one, two := parse(t, spec, ""), parse(t, spec, "")
		for offset := range 500 {
			moment := at("2026-04-01T00:00:00Z").Add(time.Duration(offset) * 333 * time.Millisecond)
			first := one.Next(moment)
			if again := two.Next(first.Add(-time.Second)); !again.Equal(first) {
				t.Fatalf("%s from %s: %s, then %s", spec, moment, first, again)
			}
		}
	}
}
