// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the controller's own metrics, on controller-runtime's registry. docs/controller.md lists them,
// with alert rules.
//
// Gauges are set anew at each reconcile and removed with their resource, so that an alert on one always clears.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Labels tell which resource a value belongs to.
type Labels struct {
	Namespace string
	Name      string
	// Role is source or destination.
	Role string
	// Method is the replication method.
	Method string
}

var labelNames = []string{"namespace", "name", "role", "method"}

func (l Labels) values(more ...string) []string {
	return append([]string{l.Namespace, l.Name, l.Role, l.Method}, more...)
}

// vector is what all metrics with labels have in common.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func names(more ...string) []string { return append(append([]string{}, labelNames...), more...) }

func counter(name, help string, more ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names(more...))
}

func gauge(name, help string, more ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, names(more...))
}

var (
	syncDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "volferry_sync_duration_seconds",
		Help: "Time from the start of a completed sync to its end, retries included.",
		// From one second to nine hours, each twice the one before.
		Buckets: prometheus.ExponentialBuckets(1, 2, 16),
	}, labelNames)
	lastSuccess = gauge("volferry_last_success_timestamp_seconds", "When the last completed sync ended, in seconds since 1970.")
	outOfSync   = gauge("volferry_out_of_sync", "1 while the replica is older than the triggers ask for.")
	failed      = gauge("volferry_permanently_failed", "1 while the last failure is one that a retry cannot cure; nothing is tried until the resource changes.")
	missed      = counter("volferry_missed_intervals_total", "Ticks of the schedule that had no sync of their own.")
	transferred = counter("volferry_transfer_bytes_total", "Bytes of completed syncs: sent over the wire, or found at the destination (matched).", "kind")
	failures    = counter("volferry_failures_total", "Failed tries, by reason.", "reason")
	results     = counter("volferry_sync_results_total", "Tries of a sync that ended, by result (success or failure).", "result")
	finalSync   = gauge("volferry_final_sync_phase", "1 for the phase that the final sync is in.", "phase")
	promoted    = gauge("volferry_promoted", "1 while the Destination is promoted.")
	restoring   = gauge("volferry_restoring", "1 while a resource that was restored from a backup waits.")
	sourceInfo  = gauge("volferry_source_info", "Always 1; says which claim a Source replicates.", "pvc")

	vectors = []vector{
		syncDuration, lastSuccess, outOfSync, failed, missed, transferred, failures, results, finalSync, promoted, restoring, sourceInfo,
	}

	webhookRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "volferry_webhook_requests_total",
		Help: "Answers of the webhook trigger, by HTTP status code.",
	}, []string{"code"})
)

func init() {
	for _, v := range vectors {
		ctrlmetrics.Registry.MustRegister(v)
	}
	ctrlmetrics.Registry.MustRegister(webhookRequests)
}

// Success counts a completed sync: when it ended, how long it took, the bytes sent (or received) and matched.
func Success(l Labels, end time.Time, duration time.Duration, sent, matched int64) {
	syncDuration.WithLabelValues(l.values()...).Observe(duration.Seconds())
	SetLastSuccess(l, end)
	transferred.WithLabelValues(l.values("sent")...).Add(float64(max(sent, 0)))
	transferred.WithLabelValues(l.values("matched")...).Add(float64(max(matched, 0)))
	results.WithLabelValues(l.values("success")...).Inc()
	// So that a rate over failures has a first value to start from.
	results.WithLabelValues(l.values("failure")...).Add(0)
}

// Failure counts a try that failed, by its reason: one of the engine's or a condition's words, never free text.
func Failure(l Labels, reason string) {
	failures.WithLabelValues(l.values(reason)...).Inc()
	results.WithLabelValues(l.values("failure")...).Inc()
}

// MissedIntervals counts ticks that had no sync of their own.
func MissedIntervals(l Labels, ticks int) {
	missed.WithLabelValues(l.values()...).Add(float64(max(ticks, 0)))
}

// SetLastSuccess shows when the last completed sync ended, also right after a restart of the controller. A zero time
// shows nothing.
func SetLastSuccess(l Labels, end time.Time) {
	if !end.IsZero() {
		lastSuccess.WithLabelValues(l.values()...).Set(float64(end.UnixMilli()) / 1000)
	}
}

// SetOutOfSync is called at each reconcile.
func SetOutOfSync(l Labels, is bool) { set(outOfSync, l, is) }

// SetPermanentlyFailed is called at each reconcile.
func SetPermanentlyFailed(l Labels, is bool) { set(failed, l, is) }

// SetPromoted is called at each reconcile of a Destination.
func SetPromoted(l Labels, is bool) { set(promoted, l, is) }

// SetRestoring is called at each reconcile.
func SetRestoring(l Labels, is bool) { set(restoring, l, is) }

// SetFinalSyncPhase shows the phase of the final sync; empty: there is none.
func SetFinalSyncPhase(l Labels, phase string) {
	replace(finalSync, l, phase)
}

// SetSourceInfo says which claim a Source replicates.
func SetSourceInfo(l Labels, pvc string) {
	replace(sourceInfo, l, pvc)
}

// WebhookRequest counts an answer of the webhook trigger.
func WebhookRequest(code int) { webhookRequests.WithLabelValues(strconv.Itoa(code)).Inc() }

// Drop removes every series of a resource that is gone; role is source or destination.
func Drop(role, namespace, name string) {
	match := prometheus.Labels{"role": role, "namespace": namespace, "name": name}
	for _, v := range vectors {
		v.DeletePartialMatch(match)
	}
}

func set(g *prometheus.GaugeVec, l Labels, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	g.WithLabelValues(l.values()...).Set(value)
}

// replace leaves one series of the resource: the one with the given further label, at 1; none for an empty label.
func replace(g *prometheus.GaugeVec, l Labels, value string) {
	g.DeletePartialMatch(prometheus.Labels{"role": l.Role, "namespace": l.Namespace, "name": l.Name})
	if value != "" {
		g.WithLabelValues(l.values(value)...).Set(1)
	}
}
