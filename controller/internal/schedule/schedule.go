// SPDX-License-Identifier: Apache-2.0

// Package schedule computes the ticks of a Source's schedule: cron expressions of 5 or 6 fields, descriptors such as
// @daily, and @every with a duration, in a time zone.
//
// Cron libraries differ in what a change of daylight saving time does to them. What is wanted of a replication schedule:
//
//   - An expression that names hours (0 3 * * *) means times on the wall clock, and each of them happens once a local day.
//     Where the clock jumps over it, its tick is the moment of the jump; where the clock shows it twice, its tick is the
//     first of both. The library alone would drop the first and do the second twice.
//   - An expression that holds in every hour (*/5 * * * *) means an interval. It goes on in both passes of a repeated hour
//     and does not make up for a hour that was jumped over, so that the distance of its ticks stays the same.
//   - @every counts from an anchor, not from the start of the process, so that a restart moves no tick.
//
// So the library (robfig/cron) only parses, and searches in a calendar without time zone; the change between that calendar
// and real time is made here.
package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the controller's image has no zone files

	"github.com/robfig/cron/v3"
)

// Reasons of an Error, as they appear in condition Accepted.
const (
	ReasonInvalidSchedule = "InvalidSchedule"
	ReasonInvalidTimeZone = "InvalidTimeZone"
)

// Error is a schedule that cannot be used; its text is one sentence.
type Error struct {
	// Reason is ReasonInvalidSchedule or ReasonInvalidTimeZone.
	Reason string
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Schedule is a parsed schedule. It is immutable and may be used by several goroutines at once.
type Schedule struct {
	// Either every is positive, or cron is set.
	every  time.Duration
	anchor time.Time

	cron *cron.SpecSchedule
	zone *time.Location
	// hourly is whether every hour of the day matches.
	hourly bool
}

const (
	maxSpec  = 256
	allHours = 1<<24 - 1
)

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a schedule. An empty timeZone is UTC. Ticks of @every are counted from anchor, which must not change between
// calls for the same object: its creation time, for example. The error is an *Error.
func Parse(spec, timeZone string, anchor time.Time) (*Schedule, error) {
	zone, err := loadZone(timeZone)
	if err != nil {
		return nil, err
	}
	spec = strings.TrimSpace(spec)
	switch {
	case spec == "":
		return nil, invalid("the schedule is empty")
	case len(spec) > maxSpec:
		return nil, invalid("the schedule has more than %d characters", maxSpec)
	case strings.Contains(spec, "TZ="):
		return nil, invalid("the schedule %q names a time zone itself: use timeZone for that", spec)
	case strings.HasPrefix(spec, "@every"):
		return parseEvery(spec, anchor)
	}
	return parseCron(spec, zone)
}

func invalid(format string, args ...any) *Error {
	return &Error{Reason: ReasonInvalidSchedule, Detail: fmt.Sprintf(format, args...)}
}

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, &Error{ReasonInvalidTimeZone, fmt.Sprintf("the time zone %.64q is not an IANA name such as Europe/Berlin", name)}
	}
	return zone, nil
}

func parseEvery(spec string, anchor time.Time) (*Schedule, error) {
	text := strings.TrimSpace(strings.TrimPrefix(spec, "@every"))
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return nil, invalid("the schedule %q does not name a duration in whole seconds, at least 1s, such as 90s", spec)
	}
	return &Schedule{every: d, anchor: anchor.Truncate(time.Second), zone: time.UTC}, nil
}

func parseCron(spec string, zone *time.Location) (*Schedule, error) {
	if fields := len(strings.Fields(spec)); !strings.HasPrefix(spec, "@") && fields != 5 && fields != 6 {
		return nil, invalid("the schedule %q has %d fields: 5, or 6 with leading seconds, are needed", spec, fields)
	}
	parsed, err := parser.Parse(spec)
	if err != nil {
		return nil, invalid("the schedule %q cannot be understood: %v", spec, err)
	}
	fields, isSpec := parsed.(*cron.SpecSchedule)
	if !isSpec {
		return nil, invalid("the schedule %q cannot be understood", spec)
	}
	s := &Schedule{cron: fields, zone: zone, hourly: fields.Hour&allHours == allHours}
	s.cron.Location = time.UTC
	if s.Next(anyTime).IsZero() {
		return nil, invalid("the schedule %q never comes: no year has such a day", spec)
	}
	return s, nil
}

// anyTime is where the search for a first tick starts: a leap day follows within the library's horizon of five years.
var anyTime = time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)

// Next is the first tick after a time; zero if there is none in the next five years.
func (s *Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.nextEvery(after)
	case s.hourly:
		return s.nextHourly(after)
	}
	return s.nextWall(after)
}

// Interval is the distance of the two ticks that follow a time; zero if there are not two.
func (s *Schedule) Interval(after time.Time) time.Duration {
	first := s.Next(after)
	if first.IsZero() {
		return 0
	}
	second := s.Next(first)
	if second.IsZero() {
		return 0
	}
	return second.Sub(first)
}

func (s *Schedule) nextEvery(after time.Time) time.Time {
	if after.Before(s.anchor) {
		return s.anchor.Add(s.every)
	}
	return s.anchor.Add((after.Sub(s.anchor)/s.every + 1) * s.every)
}
