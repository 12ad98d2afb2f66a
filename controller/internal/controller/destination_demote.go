// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// demote makes a secondary of the volume again: it is taken from the user's claim, which may be there, being deleted or
// gone. A promotion that has not got so far is undone.
func (r *destinationRun) demote(ctx context.Context) error {
	status := &r.destination.Status
	promotion := status.Promotion
	if promotion.State != v1alpha1.PromotionDemoting {
		promotion.State, promotion.Time = v1alpha1.PromotionDemoting, &metav1.Time{Time: r.now}
		if err := r.persist(ctx); err != nil {
			return err
		}
	}
	r.set.False(v1alpha1.ConditionPromoted, v1alpha1.ReasonDemoting, "the volume is taken back into the vault")
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonPromoted, "nobody listens: the volume is being demoted")
	if err := r.endListener(ctx, false); err != nil {
		return err
	}
	if err := r.spare(ctx, promotion.PVCName); err != nil {
		return err
	}
	for _, name := range []string{names.Guard(r.childSet), names.Restored(r.childSet)} {
		if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(name)); err != nil {
			return err
		}
	}
	pv, err := r.findPV(ctx, promotion.PVName)
	if err != nil {
		return err
	}
	switch {
	case promotion.PVName == "" || pv != nil && status.Fence == nil && r.inVault(pv):
		return r.undone(ctx)
	case pv == nil:
		return r.volumeLost(ctx)
	}
	if err := r.takeBack(ctx, pv); err != nil {
		return err
	}
	return r.demoted(ctx, pv)
}

// inVault tells whether a volume never left our claims.
func (r *destinationRun) inVault(pv *corev1.PersistentVolume) bool {
	return refers(pv, r.Options.VaultNamespace, r.childSet) || refers(pv, r.Options.VaultNamespace, names.Restored(r.childSet))
}

// takeBack brings the volume under the staging claim, after removing a staging claim of another volume.
func (r *destinationRun) takeBack(ctx context.Context, pv *corev1.PersistentVolume) error {
	for _, name := range []string{r.childSet, names.Restored(r.childSet)} {
		claim, err := r.findClaim(ctx, r.key(name))
		if err != nil {
			return err
		}
		if claim != nil && (claim.Spec.VolumeName != pv.Name || name != r.childSet) {
			if err := r.awaitGone(ctx, r.destination, claim, r.key(name)); err != nil {
				return err
			}
		}
	}
	if fence := r.destination.Status.Fence; fence == nil || !refers(pv, r.Options.VaultNamespace, r.childSet) {
		if err := r.awaitFinalSync(ctx, pv, r.destination.Status.Promotion.PVCName); err != nil {
			return err
		}
	}
	if r.set.Reason(v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonInUse {
		r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, "no final sync needs the volume")
	}
	err := r.take(ctx, r.taking(pv.Name, r.destination.Status.Promotion.PVCName))
	var used *inUseError
	if errors.As(err, &used) {
		r.blocked(v1alpha1.ReasonInUse, "the volume cannot be demoted: "+used.who)
		return lookAgain("the end of its use", usePoll)
	}
	return err
}

// taking of a volume under the staging claim.
func (r *destinationRun) taking(pvName, pvcName string) taking {
	return taking{
		child: r.child(r.childSet), pvName: pvName, pvcName: pvcName,
		fence: &r.destination.Status.Fence, persist: r.persist,
	}
}

// demoted puts on record that the volume is a secondary, and holds what the user left in it.
func (r *destinationRun) demoted(ctx context.Context, pv *corev1.PersistentVolume) error {
	status := &r.destination.Status
	promotion := status.Promotion
	r.beginEpoch(promotion.Epoch)
	status.Staging = &v1alpha1.StagingVolume{PVName: pv.Name}
	status.LatestImage = &v1alpha1.Image{Kind: imageStaging, Name: r.childSet, Seq: status.Lineage.Seq, Time: metav1.Time{Time: r.now}}
	status.Promotion, status.Fence, status.Retry, status.PendingImage = nil, nil, nil, nil
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.note(r.destination, corev1.EventTypeNormal, "Demoted", "Demote", "volume %s was taken from claim %s and receives again", pv.Name, promotion.PVCName)
	return lookAgain("the listener", time.Millisecond)
}

// undone forgets a promotion that has not changed anything outside the vault. A volume that an image was restored into goes
// first: the next promotion may be of another image.
func (r *destinationRun) undone(ctx context.Context) error {
	if err := r.awaitGone(ctx, r.destination, &corev1.PersistentVolumeClaim{}, r.key(names.Restored(r.childSet))); err != nil {
		return err
	}
	r.destination.Status.Promotion = nil
	if err := r.persist(ctx); err != nil {
		return err
	}
	return lookAgain("the listener", time.Millisecond)
}

// volumeLost begins anew with an empty volume: whoever deleted the claim decided that its volume goes with it. Where a
// restored volume was lost on its way, the staging volume is still there and receives again.
func (r *destinationRun) volumeLost(ctx context.Context) error {
	status := &r.destination.Status
	name := status.Promotion.PVName
	claim, err := r.findClaim(ctx, r.key(r.childSet))
	if err != nil {
		return err
	}
	switch {
	case claim != nil && claim.Spec.VolumeName != name && claim.DeletionTimestamp.IsZero() && status.Staging != nil:
		return r.undone(ctx)
	case claim != nil:
		// A claim without its volume would be taken for a staging volume.
		if err := r.awaitGone(ctx, r.destination, claim, r.key(r.childSet)); err != nil {
			return err
		}
	}
	r.beginEpoch(status.Promotion.Epoch)
	status.Promotion, status.Fence, status.Staging = nil, nil, nil
	status.LatestImage, status.PendingImage, status.LastReceived = nil, nil, nil
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.note(r.destination, corev1.EventTypeWarning, "VolumeGone", "Demote", "volume %s is gone; a new one will receive everything", name)
	return lookAgain("a new staging volume", time.Millisecond)
}

// leaveVolume is for a Destination that is deleted. A promoted volume stays the user's, and one that is just being taken
// is given back. It tells whether the staging claim is to stay, too.
func (r *destinationRun) leaveVolume(ctx context.Context) error {
	status := &r.destination.Status
	if fence := status.Fence; fence != nil && (status.Promotion != nil || !fence.Settled) {
		if err := r.giveBack(ctx, r.taking(fence.PVName, fence.PVCName)); err != nil {
			return err
		}
	}
	if status.Promotion == nil {
		return nil
	}
	if err := r.spare(ctx, status.Promotion.PVCName); err != nil {
		return err
	}
	pv, err := r.findPV(ctx, status.Promotion.PVName)
	if err != nil || pv == nil || r.inVault(pv) {
		return err
	}
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.destination.Namespace, Name: status.Promotion.PVCName})
	if err != nil {
		return err
	}
	if claim != nil && boundTo(claim, pv) {
		return r.settlePolicy(ctx, pv)
	}
	if claim != nil && refers(pv, claim.Namespace, claim.Name) && slices.Contains([]types.UID{"", claim.UID}, pv.Spec.ClaimRef.UID) && wants(claim, pv) {
		// Handed over, and not bound yet. Once it is, nobody would give the volume its policy back.
		if err := r.wake(ctx, claim, pv); err != nil {
			return err
		}
		return lookAgain("claim "+claim.Name+" to be bound", deletionPoll)
	}
	r.note(r.destination, corev1.EventTypeNormal, "VolumeRetained", "Finalize",
		"volume %s has no bound claim and stays, with policy Retain", fmt.Sprint(pv.Name))
	return nil
}
