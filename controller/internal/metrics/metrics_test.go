// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// series lists "name{label values} value" of all series of a resource, sorted; histograms by their count.
func series(t *testing.T, name string) []string {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			mine, extra := false, ""
			for _, label := range m.GetLabel() {
				switch label.GetName() {
				case "name":
					mine = label.GetValue() == name
				case "namespace", "role", "method":
				default:
					extra = "{" + label.GetValue() + "}"
				}
			}
			if mine {
				value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				list = append(list, fmt.Sprintf("%s%s %g", strings.TrimPrefix(family.GetName(), "volferry_"), extra, value))
			}
		}
	}
	sort.Strings(list)
	return list
}

func expect(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := series(t, name); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLifeOfASource(t *testing.T) {
	l := Labels{"ns", "one", "source", "Rsync"}
	neighbour := Labels{"ns", "two", "source", "Rsync"}
	SetOutOfSync(neighbour, true)
	SetSourceInfo(l, "claim")
	SetOutOfSync(l, true)
	SetPermanentlyFailed(l, true)
	Failure(l, "CannotConnect")
	Failure(l, "CannotConnect")
	MissedIntervals(l, 3)
	expect(t, "one", "failures_total{CannotConnect} 2", "missed_intervals_total 3", "out_of_sync 1", "permanently_failed 1",
		"source_info{claim} 1", "sync_results_total{failure} 2")

	SetOutOfSync(l, false) // alerts clear
	SetPermanentlyFailed(l, false)
	Success(l, time.Unix(1000, 5e8), 3*time.Second, 100, 20)
	expect(t, "one", "failures_total{CannotConnect} 2", "last_success_timestamp_seconds 1000.5", "missed_intervals_total 3",
		"out_of_sync 0", "permanently_failed 0", "source_info{claim} 1", "sync_duration_seconds 1",
		"sync_results_total{failure} 2", "sync_results_total{success} 1", "transfer_bytes_total{matched} 20", "transfer_bytes_total{sent} 100")

	Drop("destination", "ns", "one") // a Destination of that name is another resource
	Drop("source", "other", "one")
	if len(series(t, "one")) == 0 {
		t.Error("another resource's end dropped the series")
	}
	Drop("source", "ns", "one")
	expect(t, "one")
	expect(t, "two", "out_of_sync 1")
	Drop("source", "ns", "two")
}

func TestOneSeriesOfAState(t *testing.T) {
	l := Labels{"ns", "state", "source", "Rsync"}
	SetFinalSyncPhase(l, "Fencing")
	SetFinalSyncPhase(l, "Syncing")
	SetSourceInfo(l, "old")
	SetSourceInfo(l, "new")
	expect(t, "state", "final_sync_phase{Syncing} 1", "source_info{new} 1")
	SetFinalSyncPhase(l, "")
	expect(t, "state", "source_info{new} 1")
	Drop("source", "ns", "state")
}

func TestLastSuccessUnknown(t *testing.T) {
	l := Labels{"ns", "fresh", "destination", "Rsync"}
	SetLastSuccess(l, time.Time{})
	SetPromoted(l, true)
	SetRestoring(l, false)
	expect(t, "fresh", "promoted 1", "restoring 0")
	Drop("destination", "ns", "fresh")
	expect(t, "fresh")
}
