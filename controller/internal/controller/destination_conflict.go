// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// placeFree tells whether the claim of that name can get the volume. A claim that is in the way is left as it is, unless
// the user wants it replaced, or it has lost its volume to this Destination.
func (r *destinationRun) placeFree(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	switch {
	case claim == nil:
		return nil
	case !claim.DeletionTimestamp.IsZero():
		r.blocked(v1alpha1.ReasonPVCTerminating, fmt.Sprintf("claim %s is being deleted; a new one is made once it is gone", claim.Name))
		return lookAgain("the deletion of claim "+claim.Name, deletionPoll)
	case claim.Spec.VolumeName == pv.Name:
		return nil // bound to it already, or Lost since it was taken
	case claim.Spec.VolumeName == "":
		if why := misfit(claim, pv); why != "" {
			r.blocked(v1alpha1.ReasonPVCIncompatible, fmt.Sprintf("claim %s cannot be bound to volume %s: %s", claim.Name, pv.Name, why))
			return lookAgain("another claim", usePoll)
		}
		return nil
	}
	if replaceable := r.destination.Spec.Promote.ConflictPolicy == v1alpha1.ConflictReplace || r.bereft(claim); !replaceable {
		if err := r.spare(ctx, claim.Name); err != nil {
			return err
		}
		r.blocked(v1alpha1.ReasonPVCConflict, fmt.Sprintf(
			"claim %s is bound to another volume, %s; delete the claim, or set spec.promote.conflictPolicy to Replace", claim.Name, claim.Spec.VolumeName))
		return lookAgain("the end of the conflict", usePoll)
	}
	return r.replace(ctx, claim)
}

// bereft tells of a claim that has no volume any more since this Destination took it: that volume received, and now another
// one is promoted in its place.
func (r *destinationRun) bereft(claim *corev1.PersistentVolumeClaim) bool {
	staging := r.destination.Status.Staging
	return claim.Status.Phase == corev1.ClaimLost && staging != nil && staging.PVName != "" && claim.Spec.VolumeName == staging.PVName
}

// misfit says why the binder would not bind a claim to a volume; empty: it would.
func misfit(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) string {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	mode := func(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
		return ptr.Deref(m, corev1.PersistentVolumeFilesystem)
	}
	switch {
	case wanted.Cmp(has) > 0:
		return fmt.Sprintf("it asks for %s, the volume has %s", &wanted, &has)
	case mode(claim.Spec.VolumeMode) != mode(pv.Spec.VolumeMode):
		return fmt.Sprintf("its volumeMode is %s, the volume's %s", mode(claim.Spec.VolumeMode), mode(pv.Spec.VolumeMode))
	case ptr.Deref(claim.Spec.StorageClassName, "") != pv.Spec.StorageClassName:
		return fmt.Sprintf("its storage class is %q, the volume's %q", ptr.Deref(claim.Spec.StorageClassName, ""), pv.Spec.StorageClassName)
	}
	for _, access := range claim.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, access) {
			return fmt.Sprintf("it asks for access mode %s, the volume has %v", access, pv.Spec.AccessModes)
		}
	}
	return ""
}

// replace removes a claim of another volume once nobody uses it. That other volume stays.
func (r *destinationRun) replace(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	other := claim.Spec.VolumeName
	pv, err := r.findPV(ctx, other)
	if err != nil {
		return err
	}
	if pv != nil {
		if who := r.inUse(ctx, pv, claim.Namespace, claim.Name); who != "" {
			r.blocked(v1alpha1.ReasonInUse, "claim "+claim.Name+" is to be replaced, but "+who)
			return lookAgain("the end of its use", usePoll)
		}
	}
	// Only this names the volume once the claim is gone, so it comes first.
	r.note(r.destination, corev1.EventTypeWarning, "PVCConflict", "Replace",
		"claim %s is being replaced; volume %s, which it has, is kept with policy Retain", claim.Name, other)
	if err := r.mark(ctx, claim, names.Owner("Destination", r.destination)); err != nil {
		return err
	}
	if pv != nil {
		if err := r.keepVolume(ctx, pv, claim); err != nil {
			return err
		}
	}
	// The user, who asked for that, may have changed it since.
	known := client.Preconditions{UID: ptr.To(claim.UID), ResourceVersion: ptr.To(claim.ResourceVersion)}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, claim, known)); err != nil {
		return err
	}
	return lookAgain("the deletion of claim "+claim.Name, deletionPoll)
}

// keepVolume sets the policy of a volume whose claim is about to go to Retain.
func (r *destinationRun) keepVolume(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain || !refers(pv, claim.Namespace, claim.Name) {
		return nil
	}
	return r.patchPolicy(ctx, pv, corev1.PersistentVolumeReclaimRetain, string(pv.Spec.PersistentVolumeReclaimPolicy))
}

// mark says on a claim of the user who is about to replace it, which the admission policy asks for; empty: nobody.
func (r *destinationRun) mark(ctx context.Context, claim *corev1.PersistentVolumeClaim, by string) error {
	if claim.Annotations[v1alpha1.AnnotationReplacedBy] == by {
		return nil
	}
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1alpha1.AnnotationReplacedBy] = by
	if by == "" {
		delete(claim.Annotations, v1alpha1.AnnotationReplacedBy)
	}
	return r.Client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// spare takes back what was done to a claim that was about to be replaced, where nobody wants that any more.
func (r *destinationRun) spare(ctx context.Context, name string) error {
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.destination.Namespace, Name: name})
	if err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() ||
		claim.Annotations[v1alpha1.AnnotationReplacedBy] != names.Owner("Destination", r.destination) {
		return err
	}
	pv, err := r.findPV(ctx, claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	if pv != nil && boundTo(claim, pv) {
		if err := r.restorePolicy(ctx, pv, claim.Namespace); err != nil {
			return err
		}
	}
	return r.mark(ctx, claim, "")
}
