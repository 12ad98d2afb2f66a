// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/params"
	"volferry.io/controller/internal/schedule"
)

// accept checks what the user asks for and sets Accepted.
func (r *sourceRun) accept(ctx context.Context) error {
	var err error
	if r.privileged, err = r.base.privileged(ctx, r.source.Namespace); err != nil {
		return err
	}
	r.params, err = params.ParseSource(r.source.Spec.Parameters, params.Options{PrivilegedMovers: r.privileged})
	if err != nil {
		return r.reject(err)
	}
	if err := r.parseSchedule(); err != nil {
		return r.reject(err)
	}
	r.set.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "the specification is valid")
	return nil
}

// reject says why the resource is not accepted; only an edit brings it on.
func (r *sourceRun) reject(cause error) error {
	r.set.False(v1alpha1.ConditionAccepted, rejectionReason(cause), cause.Error())
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, "not accepted: "+cause.Error())
	r.source.Status.NextSyncTime = nil
	return errStalled
}

func rejectionReason(cause error) string {
	var parameter *params.Error
	var timing *schedule.Error
	switch {
	case errors.As(cause, &parameter):
		return parameter.Reason
	case errors.As(cause, &timing):
		return timing.Reason
	}
	return v1alpha1.ReasonInvalidParameter
}

// parseSchedule also notices an edit: from then on the new schedule counts, and the edit itself starts nothing.
func (r *sourceRun) parseSchedule() error {
	status, trigger := &r.source.Status, r.source.Spec.Trigger
	if trigger.Schedule == "" {
		status.NextSyncTime, status.LastScheduleTime, status.ObservedSchedule = nil, nil, ""
		return nil
	}
	parsed, err := schedule.Parse(trigger.Schedule, trigger.TimeZone, r.source.CreationTimestamp.Time)
	if err != nil {
		// Whatever follows is an edit, also a return to what was there before.
		status.ObservedSchedule = ""
		return err
	}
	r.schedule = parsed
	if observed := trigger.Schedule + " " + trigger.TimeZone; status.ObservedSchedule != observed || status.LastScheduleTime == nil {
		status.ObservedSchedule = observed
		status.LastScheduleTime = &metav1.Time{Time: r.now}
	}
	status.NextSyncTime = nil
	if next := parsed.Next(r.now); !next.IsZero() {
		status.NextSyncTime = &metav1.Time{Time: next.UTC()}
	}
	return nil
}
