// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/metrics"
)

// measure sets the Source's gauges anew, so that an alert on one clears by itself.
func (r *sourceRun) measure() {
	status := &r.source.Status
	if status.LastSyncTime != nil {
		metrics.SetLastSuccess(r.labels(), status.LastSyncTime.Time)
	}
	metrics.SetOutOfSync(r.labels(), r.outOfSync())
	metrics.SetPermanentlyFailed(r.labels(), status.Retry != nil && status.Retry.Permanent)
	metrics.SetSourceInfo(r.labels(), r.source.Spec.Source)
	phase := ""
	if status.FinalSync != nil {
		phase = status.FinalSync.Phase
	}
	metrics.SetFinalSyncPhase(r.labels(), phase)
}

// outOfSync tells whether the replica is older than the user asked for: tries have failed, or two ticks have passed since
// the last completed sync. A dormant Source has no replica to keep.
func (r *sourceRun) outOfSync() bool {
	status := &r.source.Status
	if r.set.Reason(v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSourcePVCNotFound {
		return false
	}
	if status.Retry != nil && status.Retry.Failures > 0 {
		return true
	}
	if r.schedule == nil || status.FinalSync != nil || r.source.Spec.Paused {
		return false
	}
	since := r.source.CreationTimestamp.Time
	if status.LastSyncTime != nil {
		since = status.LastSyncTime.Time
	}
	first := r.schedule.Next(since)
	if first.IsZero() {
		return false
	}
	second := r.schedule.Next(first)
	return !second.IsZero() && r.now.After(second)
}

// measure sets the Destination's gauges anew.
func (r *destinationRun) measure() {
	status := &r.destination.Status
	if status.LastReceived != nil && status.LastReceived.Time != nil {
		metrics.SetLastSuccess(r.labels(), status.LastReceived.Time.Time)
	}
	metrics.SetPromoted(r.labels(), status.Promotion != nil && status.Promotion.State == v1alpha1.PromotionPromoted)
	metrics.SetPermanentlyFailed(r.labels(), status.Retry != nil && status.Retry.Permanent)
}
