// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"volferry.io/controller/internal/names"
)

// guardPoll is how soon a guard that has ended is followed by another.
const guardPoll = 30 * time.Second

// guard keeps a mover that has no volume and the promoted epoch: a Source of an earlier epoch is told so, instead of
// finding nobody. One of a later epoch fails at the read-only emptiness and tries again, until the Destination is demoted.
func (r *destinationRun) guard(ctx context.Context) error {
	if r.destination.Spec.Paused {
		return r.removeGuard(ctx)
	}
	input := r.jobInput()
	input.Child = r.child(names.Guard(r.childSet))
	input.ClaimName, input.ReadOnly, input.Attempt = "", true, "guard"
	mover, err := r.ensureJob(ctx, input)
	if err != nil {
		return err
	}
	if mover.finished() {
		if err := r.removeGuard(ctx); err != nil {
			return err
		}
		return lookAgain("the next guard", guardPoll)
	}
	if mover.running() && r.shown.due(r.destination.UID, r.Clock.Now()) {
		r.showRefusal(ctx, mover)
	}
	return lookAgain("a Source that comes too late", listenPoll)
}

func (r *destinationRun) removeGuard(ctx context.Context) error {
	return r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(names.Guard(r.childSet)))
}
