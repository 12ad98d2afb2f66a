// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// A wall time is what a clock in the zone shows, held as a UTC time of the same digits: a calendar without gaps or
// repetitions, in which the library can search.

func wallOf(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// momentOf is the moment at which the zone's clock shows the wall time: the first of two, and the moment of the jump
// where the clock never shows it. It never decreases as the wall time grows, which nextWall relies on.
func momentOf(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := t.ZoneBounds()
	// In a gap the standard library answers with a time that is right under one of the two offsets.
	switch shown := wallOf(t, zone); {
	case shown.After(wall):
		return start
	case shown.Before(wall):
		return end
	case start.IsZero():
		return t
	}
	_, offset := t.Zone()
	_, offsetBefore := start.Add(-1).Zone()
	first := t.Add(time.Duration(offset-offsetBefore) * time.Second)
	if offsetBefore > offset && first.Before(start) {
		return first
	}
	return t
}

// nextWall searches among wall times. Several of them can fall on one moment (the jump), and in the second pass of a
// repeated hour the next ones already are in the past; both are passed over.
func (s *Schedule) nextWall(after time.Time) time.Time {
	for wall := s.cron.Next(wallOf(after, s.zone)); !wall.IsZero(); wall = s.cron.Next(wall) {
		if moment := momentOf(wall, s.zone); moment.After(after) {
			return moment.In(s.zone)
		}
	}
	return time.Time{}
}

// maxOffsetChanges bounds the search through stretches of constant offset: five years have about ten.
const maxOffsetChanges = 64

// nextHourly searches each stretch of constant offset for itself, so that it sees every moment at which the clock shows a
// matching time, repeated hours twice.
func (s *Schedule) nextHourly(after time.Time) time.Time {
	for range maxOffsetChanges {
		local := after.In(s.zone)
		_, seconds := local.Zone()
		offset := time.Duration(seconds) * time.Second
		_, end := local.ZoneBounds()
		wall := s.cron.Next(after.UTC().Add(offset))
		if wall.IsZero() {
			return time.Time{}
		}
		if moment := wall.Add(-offset); end.IsZero() || moment.Before(end) {
			return moment.In(s.zone)
		}
		// Search on from just before the change, under the new offset; the change itself may be a tick.
		after = end
		if moment, found := s.tickAt(end); found {
			return moment
		}
	}
	return time.Time{}
}

// tickAt tells whether a moment is a tick of an hourly schedule.
func (s *Schedule) tickAt(moment time.Time) (time.Time, bool) {
	wall := wallOf(moment, s.zone)
	return moment.In(s.zone), s.cron.Next(wall.Add(-time.Second)).Equal(wall)
}
