// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var anchor = at("2026-01-01T00:00:00Z")

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func parse(t *testing.T, spec, zone string) *Schedule {
	t.Helper()
	s, err := Parse(spec, zone, anchor)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ticks lists the ticks in (from, to] in UTC.
func ticks(s *Schedule, from, to string) []string {
	var list []string
	for tick := s.Next(at(from)); !tick.IsZero() && !tick.After(at(to)); tick = s.Next(tick) {
		list = append(list, tick.UTC().Format(time.RFC3339))
	}
	return list
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ spec, zone, reason, want string }{
		"minute 61":       {"61 * * * *", "", ReasonInvalidSchedule, "61"},
		"four fields":     {"* * * *", "", ReasonInvalidSchedule, "4 fields"},
		"seven fields":    {"* * * * * * *", "", ReasonInvalidSchedule, "7 fields"},
		"empty":           {"  ", "", ReasonInvalidSchedule, "empty"},
		"words":           {"at three in the morning", "", ReasonInvalidSchedule, "understood"},
		"reboot":          {"@reboot", "", ReasonInvalidSchedule, "understood"},
		"every too short": {"@every 500ms", "", ReasonInvalidSchedule, "at least 1s"},
		"every fraction":  {"@every 1500ms", "", ReasonInvalidSchedule, "whole seconds"},
		"every negative":  {"@every -5m", "", ReasonInvalidSchedule, "whole seconds"},
		"every nothing":   {"@every", "", ReasonInvalidSchedule, "whole seconds"},
		"zone inside":     {"TZ=Asia/Tokyo 0 3 * * *", "", ReasonInvalidSchedule, "timeZone"},
		"cron zone":       {"CRON_TZ=UTC 0 3 * * *", "", ReasonInvalidSchedule, "timeZone"},
		"zone alone":      {"TZ=UTC", "", ReasonInvalidSchedule, "timeZone"},
		"never":           {"0 0 30 2 *", "", ReasonInvalidSchedule, "never comes"},
		"step 0":          {"*/0 * * * *", "", ReasonInvalidSchedule, "understood"},
		"too long":        {strings.Repeat("1,", 200) + "1 * * * *", "", ReasonInvalidSchedule, "256"},
		"no zone":         {"0 3 * * *", "Europe/Atlantis", ReasonInvalidTimeZone, "IANA"},
		"local":           {"0 3 * * *", "Local", ReasonInvalidTimeZone, "IANA"},
		"path":            {"0 3 * * *", "../../etc/passwd", ReasonInvalidTimeZone, "IANA"},
		"offset":          {"0 3 * * *", "+02:00", ReasonInvalidTimeZone, "IANA"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.spec, tc.zone, anchor)
			var e *Error
			if !errors.As(err, &e) || e.Reason != tc.reason || !strings.Contains(e.Detail, tc.want) || strings.Contains(e.Detail, "\n") {
				t.Errorf("got %v, want %s and %q", err, tc.reason, tc.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	tests := map[string]struct{ spec, zone, after, want string }{
		"six fields":         {"*/10 * * * * *", "", "2026-03-01T10:00:01Z", "2026-03-01T10:00:10Z"},
		"five: second 0":     {"*/5 * * * *", "", "2026-03-01T10:00:01Z", "2026-03-01T10:05:00Z"},
		"strictly after":     {"*/5 * * * *", "", "2026-03-01T10:05:00Z", "2026-03-01T10:10:00Z"},
		"just before":        {"*/5 * * * *", "", "2026-03-01T10:04:59.999Z", "2026-03-01T10:05:00Z"},
		"just after":         {"*/5 * * * *", "", "2026-03-01T10:05:00.001Z", "2026-03-01T10:10:00Z"},
		"zone":               {"0 3 * * *", "Asia/Tokyo", "2026-03-01T00:00:00Z", "2026-03-01T18:00:00Z"},
		"hourly":             {"@hourly", "", "2026-03-01T10:20:00Z", "2026-03-01T11:00:00Z"},
		"half hour zone":     {"@hourly", "Asia/Kolkata", "2026-03-01T10:20:00Z", "2026-03-01T10:30:00Z"},
		"daily in a zone":    {"@daily", "America/New_York", "2026-03-01T10:20:00Z", "2026-03-02T05:00:00Z"},
		"weekly":             {"@weekly", "", "2026-03-02T00:00:00Z", "2026-03-08T00:00:00Z"},
		"monthly":            {"@monthly", "", "2026-03-02T00:00:00Z", "2026-04-01T00:00:00Z"},
		"yearly":             {"@yearly", "", "2026-03-02T00:00:00Z", "2027-01-01T00:00:00Z"},
		"leap day":           {"0 0 29 2 *", "", "2026-03-02T00:00:00Z", "2028-02-29T00:00:00Z"},
		"day or weekday":     {"0 0 13 * 5", "", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"},
		"names":              {"0 0 * JUL MON", "", "2026-03-01T00:00:00Z", "2026-07-06T00:00:00Z"},
		"every":              {"@every 90s", "", "2026-01-01T00:04:00Z", "2026-01-01T00:04:30Z"},
		"every on a tick":    {"@every 90s", "", "2026-01-01T00:03:00Z", "2026-01-01T00:04:30Z"},
		"every before":       {"@every 1h", "", "2025-06-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		"every for years":    {"@every 7s", "", "2030-01-01T00:00:00Z", "2030-01-01T00:00:05Z"},
		"spaces":             {"  */5  *  * * *  ", "", "2026-03-01T10:00:01Z", "2026-03-01T10:05:00Z"},
		"midnight does jump": {"0 0 * * *", "America/Asuncion", "2017-09-30T12:00:00Z", "2017-10-01T04:00:00Z"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, tc.spec, tc.zone).Next(at(tc.after)); !got.Equal(at(tc.want)) {
				t.Errorf("got %s, want %s", got.UTC().Format(time.RFC3339), tc.want)
			}
		})
	}
}

// Europe/Berlin jumps from 02:00 to 03:00 on 2026-03-29 (01:00Z), and from 03:00 back to 02:00 on 2026-10-25 (01:00Z).
func TestDaylightSaving(t *testing.T) {
	const (
		spring, springEnd = "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z"
		autumn, autumnEnd = "2026-10-23T12:00:00Z", "2026-10-26T12:00:00Z"
	)
	tests := map[string]struct {
		spec, from, to string
		want           []string
	}{
		"three in spring":         {"0 3 * * *", spring, springEnd, []string{"2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		"three in autumn":         {"0 3 * * *", autumn, autumnEnd, []string{"2026-10-24T01:00:00Z", "2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"}},
		"jumped over":             {"30 2 * * *", spring, springEnd, []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"shown twice":             {"30 2 * * *", autumn, autumnEnd, []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"several fall on a jump":  {"0,20 2,3 * * *", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z"}},
		"interval over the gap":   {"*/30 * * * *", "2026-03-29T00:10:00Z", "2026-03-29T01:40:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
		"interval over the twice": {"*/30 * * * *", "2026-10-25T00:10:00Z", "2026-10-25T02:10:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
		"off the hour":            {"17 * * * *", "2026-10-25T00:10:00Z", "2026-10-25T02:20:00Z", []string{"2026-10-25T00:17:00Z", "2026-10-25T01:17:00Z", "2026-10-25T02:17:00Z"}},
		"in the second pass":      {"30 2 * * *", "2026-10-25T01:10:00Z", "2026-10-26T12:00:00Z", []string{"2026-10-26T01:30:00Z"}},
		"every, untouched":        {"@every 12h", spring, "2026-03-29T13:00:00Z", []string{"2026-03-28T00:00:00Z", "2026-03-28T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ticks(parse(t, tc.spec, "Europe/Berlin"), tc.from, tc.to)
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
		})
	}
}

// Whatever the zone and the hour: a daily schedule has one tick for each local day, ordered.
func TestOncePerLocalDay(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tehran", "UTC"}
	for _, zone := range zones {
		for _, spec := range []string{"0 0 * * *", "30 0 * * *", "15 1 * * *", "30 2 * * *", "59 59 23 * * *"} {
			s := parse(t, spec, zone)
			tick, seen := at("2017-01-01T12:00:00Z"), map[string]int{}
			for range 366 * 3 {
				next := s.Next(tick)
				if d := next.Sub(tick); !next.After(tick) || d > 26*time.Hour {
					t.Fatalf("%s %s: %s after %s", zone, spec, next, tick)
				}
				tick = next
				seen[tick.Format(time.DateOnly)]++
			}
			for day, n := range seen {
				if n != 1 {
					t.Errorf("%s %s: %d ticks on %s", zone, spec, n, day)
				}
			}
		}
	}
}

// A second-by-second look at the clock around each change agrees with the search.
func TestHourlyAgreesWithTheClock(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe"} {
		s := parse(t, "*/7 * * * *", zone)
		for _, start := range []string{"2026-03-28T22:00:00Z", "2026-10-24T22:00:00Z", "2026-04-04T12:00:00Z", "2026-10-03T12:00:00Z"} {
			tick := at(start)
			for moment := tick.Add(time.Second); moment.Before(at(start).Add(8 * time.Hour)); moment = moment.Add(time.Second) {
				local := moment.In(s.zone)
				matches := local.Second() == 0 && local.Minute()%7 == 0
				if matches {
					if next := s.Next(tick); !next.Equal(moment) {
						t.Fatalf("%s: after %s the search says %s, the clock %s", zone, tick, next, moment)
					}
					tick = moment
				}
			}
		}
	}
}

func TestInterval(t *testing.T) {
	for spec, want := range map[string]time.Duration{"*/5 * * * *": 5 * time.Minute, "@every 90s": 90 * time.Second, "@daily": 24 * time.Hour} {
		if got := parse(t, spec, "").Interval(at("2026-06-01T00:00:30Z")); got != want {
			t.Errorf("%s: got %s, want %s", spec, got, want)
		}
	}
}
