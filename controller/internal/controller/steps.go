// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Sources and Destinations: small idempotent steps, each of which says in its error how the
// reconcile goes on.
package controller

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/params"
)

// waitError ends a reconcile without anything being wrong: a watch brings it back, or the clock where after is set.
type waitError struct {
	what  string
	after time.Duration
}

func (w *waitError) Error() string { return "waiting: " + w.what }

// waitFor an event that a watch reports.
func waitFor(what string) error { return &waitError{what: what} }

// lookAgain after a while, for what no watch reports.
func lookAgain(what string, after time.Duration) error { return &waitError{what: what, after: after} }

// errStalled ends a reconcile that only an edit of the resource, or of what it depends on, can bring on.
var errStalled = errors.New("stalled")

// conflictDelay lets a cache catch up before the next look.
const conflictDelay = 100 * time.Millisecond

// settle turns the error of the steps into what the work queue is told. next is when the clock has something to do in any
// case; zero: never.
func settle(ctx context.Context, err error, next time.Duration) (ctrl.Result, error) {
	var wait *waitError
	switch {
	case err == nil, errors.Is(err, errStalled):
		return ctrl.Result{RequeueAfter: next}, nil
	case errors.As(err, &wait):
		return ctrl.Result{RequeueAfter: sooner(wait.after, next)}, nil
	case apierrors.IsConflict(err):
		// Somebody else wrote in between, often this controller by another object's event: look again.
		ctrl.LoggerFrom(ctx).V(1).Info("conflict, looking again", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// trouble is what a condition says about an error that is neither waiting nor a conflict: the API server refuses an object,
// cannot be reached, or the like. Empty for all others.
func trouble(err error) string {
	var wait *waitError
	if err == nil || errors.Is(err, errStalled) || errors.As(err, &wait) || apierrors.IsConflict(err) {
		return ""
	}
	return moverresult.OneLine(params.Scrub("the reconcile failed and is tried again: "+err.Error()), 1024)
}

// sooner is the smaller of two delays of which zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// until is the delay to a moment, at least a millisecond so that a moment that just passed is not taken for never.
func until(now, then time.Time) time.Duration { return max(then.Sub(now), time.Millisecond) }
