// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/names"
)

// restoreImage makes a volume of the image in the vault and waits until it is there.
func (r *destinationRun) restoreImage(ctx context.Context) error {
	promotion := r.destination.Status.Promotion
	r.set.False(v1alpha1.ConditionPromoted, v1alpha1.ReasonRebinding, "image "+promotion.Image+" is being restored")
	image := r.image(promotion.Image)
	if image == nil {
		r.blocked(v1alpha1.ReasonNoImage, "image "+promotion.Image+" is gone; name another one in spec.promote.image")
		r.destination.Status.Promotion = nil
		r.pruned.Delete(r.destination.UID)
		return errStalled
	}
	claim, err := r.findClaim(ctx, r.key(promotion.Claim))
	if err != nil {
		return err
	}
	if claim != nil && (!claim.DeletionTimestamp.IsZero() || !restoredFrom(claim, image)) {
		// Of a promotion that was undone, perhaps of another image.
		if err := r.awaitGone(ctx, r.destination, claim, r.key(promotion.Claim)); err != nil {
			return err
		}
		return lookAgain("the volume of image "+image.Name, time.Millisecond)
	}
	if claim == nil {
		staging, err := r.findClaim(ctx, r.key(r.childSet))
		if err != nil {
			return err
		}
		claim = build.Claim(r.restoredClaim(image, staging))
		if err := apply(ctx, r.Client, claim); err != nil {
			return err
		}
	}
	if claim.Status.Phase != corev1.ClaimBound {
		if err := r.bindByPod(ctx, claim); err != nil {
			return err
		}
		return lookAgain("the volume of image "+image.Name, deletionPoll)
	}
	if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(promotion.Claim)); err != nil {
		return err
	}
	promotion.Step, promotion.PVName = v1alpha1.StepRebinding, claim.Spec.VolumeName
	return r.persist(ctx)
}

// restoredFrom tells whether a claim was made to hold an image.
func restoredFrom(claim *corev1.PersistentVolumeClaim, image *v1alpha1.Image) bool {
	source := claim.Spec.DataSource
	return source != nil && source.Name == image.Name && (source.Kind == "VolumeSnapshot") == (image.Kind == imageSnapshot)
}

// restoredClaim is like the staging claim, with the image's content.
func (r *destinationRun) restoredClaim(image *v1alpha1.Image, staging *corev1.PersistentVolumeClaim) build.ClaimInput {
	input := build.ClaimInput{
		Child: r.child(names.Restored(r.childSet)), StorageClassName: r.params.StorageClassName,
		AccessModes: r.params.AccessModes, VolumeMode: r.params.VolumeMode,
	}
	if r.params.Capacity != nil {
		input.Size = *r.params.Capacity
	}
	if staging != nil {
		input.StorageClassName, input.AccessModes = staging.Spec.StorageClassName, staging.Spec.AccessModes
		input.Size = staging.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if image.Kind == imageSnapshot {
		input.FromSnapshot = image.Name
	} else {
		input.FromClaim = image.Name
	}
	return input
}

// bindByPod runs a pod that does nothing on a claim whose class waits for a first consumer.
func (r *destinationRun) bindByPod(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	late, err := r.bindsLate(ctx, ptr.Deref(claim.Spec.StorageClassName, ""))
	if err != nil || !late {
		return err
	}
	input := r.jobInput()
	input.Child = r.child(claim.Name)
	input.Command, input.Role, input.Env = []string{"volferry", "version"}, "source", nil
	input.ClaimName, input.ReadOnly, input.Attempt = claim.Name, true, "bind"
	_, err = r.ensureJob(ctx, input)
	return err
}
