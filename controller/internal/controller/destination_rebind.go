// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/volume"
)

// rebind gives the promoted volume to the user's claim. Each pass looks at what there is, so it can be cut anywhere.
func (r *destinationRun) rebind(ctx context.Context) error {
	promotion := r.destination.Status.Promotion
	key := client.ObjectKey{Namespace: r.destination.Namespace, Name: promotion.PVCName}
	r.set.False(v1alpha1.ConditionPromoted, v1alpha1.ReasonRebinding, fmt.Sprintf("volume %s goes to claim %s", promotion.PVName, key.Name))
	pv, err := r.findPV(ctx, promotion.PVName)
	if err != nil {
		return err
	}
	if pv == nil {
		r.blocked(v1alpha1.ReasonNoImage, fmt.Sprintf("volume %s is gone", promotion.PVName))
		return errStalled
	}
	claim, err := r.findClaim(ctx, key)
	if err != nil {
		return err
	}
	if err := r.placeFree(ctx, claim, pv); err != nil {
		return err
	}
	if err := r.handOver(ctx, pv, claim, key); err != nil {
		return err
	}
	if err := r.awaitGone(ctx, r.destination, &corev1.PersistentVolumeClaim{}, r.key(promotion.Claim)); err != nil {
		return err
	}
	if claim == nil {
		// Whoever was faster has made the claim that is wanted, or one that is in the way.
		if err := r.Client.Create(ctx, r.userClaim(pv), fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make claim %s: %w", key.Name, err)
		}
		return lookAgain("claim "+key.Name+" to be bound", deletionPoll/4)
	}
	if !boundTo(claim, pv) {
		if err := r.wake(ctx, claim, pv); err != nil {
			return err
		}
		return lookAgain("claim "+key.Name+" to be bound", deletionPoll/4)
	}
	if err := r.settlePolicy(ctx, pv); err != nil {
		return err
	}
	return r.promoted(ctx)
}

// boundTo tells whether a claim and a volume are bound to each other, in the binder's eyes.
func boundTo(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	return claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == pv.Name &&
		pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}

// handOver points the volume at the user's claim, or at its name, and notes on it which epoch begins.
func (r *destinationRun) handOver(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, key client.ObjectKey) error {
	to := claimRef{namespace: key.Namespace, name: key.Name}
	if claim != nil {
		to.uid = claim.UID
	}
	if refers(pv, to.namespace, to.name) && pv.Spec.ClaimRef.UID == to.uid {
		return nil
	}
	lineage := v1alpha1.Lineage{ReplicationID: r.destination.Spec.ReplicationID, Epoch: r.destination.Status.Promotion.Epoch}
	if known := r.destination.Status.Lineage; known != nil {
		lineage.Seq = known.Seq
	}
	return r.redirect(ctx, pv, to, map[string]string{
		v1alpha1.AnnotationLineage: volume.LineageText(lineage), v1alpha1.AnnotationFencedAt: "",
	})
}

// userClaim is the claim that is made where there is none: the user's from then on, so it bears no mark of ours.
func (r *destinationRun) userClaim(pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.destination.Namespace, Name: r.destination.Status.Promotion.PVCName},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      pv.Spec.AccessModes,
			StorageClassName: ptr.To(pv.Spec.StorageClassName),
			VolumeMode:       pv.Spec.VolumeMode,
			VolumeName:       pv.Name,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: pv.Spec.Capacity[corev1.ResourceStorage]},
			},
		},
	}
	if wanted := r.destination.Spec.Promote.Metadata; wanted != nil {
		claim.Labels, claim.Annotations = map[string]string{}, wanted.Annotations
		for name, value := range wanted.Labels {
			// With these two the controller would take it for its own.
			if name != v1alpha1.LabelOwnerUID && (name != v1alpha1.LabelManagedBy || value != v1alpha1.ManagedBy) {
				claim.Labels[name] = value
			}
		}
	}
	return claim
}

// settlePolicy gives the promoted volume, whose claim is bound, the policy that it is to have: the one that the user
// names, else the one that it had. A Source that replicates it keeps it at Retain and gives that policy back itself.
func (r *destinationRun) settlePolicy(ctx context.Context, pv *corev1.PersistentVolume) error {
	wanted := corev1.PersistentVolumeReclaimPolicy(pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy])
	if wanted == "" {
		return nil
	}
	if promote := r.destination.Spec.Promote; promote != nil && promote.ReclaimPolicy != "" {
		wanted = promote.ReclaimPolicy
	}
	retained, err := r.retainedBySource(ctx, r.destination.Namespace, pv.Name, types.UID(""))
	switch {
	case err != nil:
		return err
	case !retained:
		return r.patchPolicy(ctx, pv, wanted, "")
	case pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] != string(wanted):
		return r.patchPolicy(ctx, pv, corev1.PersistentVolumeReclaimRetain, string(wanted))
	}
	return nil
}
