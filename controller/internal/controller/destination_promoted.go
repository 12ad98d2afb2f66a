// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/volume"
)

// promoted puts on record that the volume is the user's.
func (r *destinationRun) promoted(ctx context.Context) error {
	status := &r.destination.Status
	promotion := status.Promotion
	promotion.State, promotion.Step = v1alpha1.PromotionPromoted, ""
	promotion.Time = &metav1.Time{Time: r.now}
	r.beginEpoch(promotion.Epoch)
	status.Retry, status.PendingImage = nil, nil
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.note(r.destination, corev1.EventTypeNormal, "Promoted", "Promote",
		"claim %s has volume %s with image %s; epoch %s begins", promotion.PVCName, promotion.PVName, promotion.Image, promotion.Epoch)
	return r.stayPromoted(ctx)
}

// beginEpoch puts the epoch of a promotion on record as the Destination's own.
func (r *destinationRun) beginEpoch(epoch string) {
	status := &r.destination.Status
	if status.Lineage == nil {
		status.Lineage = &v1alpha1.DestinationLineage{}
	}
	enterEpoch(status.Lineage, epoch)
}

// enterEpoch makes an epoch the present one and remembers the greatest of all.
func enterEpoch(lineage *v1alpha1.DestinationLineage, epoch string) {
	counters := max(volume.EpochCounter(lineage.Epoch), volume.EpochCounter(epoch))
	lineage.HighestEpoch = max(lineage.HighestEpoch, int64(min(counters, math.MaxInt64-1)))
	lineage.Epoch = epoch
}

// stayPromoted removes what the promotion left over, and keeps a guard that answers a Source of an earlier epoch.
func (r *destinationRun) stayPromoted(ctx context.Context) error {
	promotion := r.destination.Status.Promotion
	r.set.True(v1alpha1.ConditionPromoted, v1alpha1.ReasonPromoted, fmt.Sprintf("claim %s has volume %s", promotion.PVCName, promotion.PVName))
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonPromoted, "the volume is promoted; remove spec.promote to let it receive again")
	if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(r.childSet)); err != nil {
		return err
	}
	// Of a promotion from a restored image, the staging volume is left.
	for _, name := range []string{r.childSet, names.Restored(r.childSet)} {
		if err := r.awaitGone(ctx, r.destination, &corev1.PersistentVolumeClaim{}, r.key(name)); err != nil {
			return err
		}
	}
	r.destination.Status.Staging = nil
	if err := r.tidyPolicy(ctx, promotion); err != nil {
		return err
	}
	if err := r.ensureKey(ctx); err != nil {
		return err
	}
	if err := r.ensureService(ctx); err != nil {
		return err
	}
	r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, "the promoted volume and the key are there")
	return r.guard(ctx)
}

// tidyPolicy repeats settlePolicy where a demotion was begun and given up.
func (r *destinationRun) tidyPolicy(ctx context.Context, promotion *v1alpha1.PromotionStatus) error {
	pv, err := r.findPV(ctx, promotion.PVName)
	if err != nil || pv == nil {
		return err
	}
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.destination.Namespace, Name: promotion.PVCName})
	if err != nil || claim == nil || !boundTo(claim, pv) {
		return err
	}
	return r.settlePolicy(ctx, pv)
}
