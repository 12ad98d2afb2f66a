// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
)

// retainVolume keeps the volume from going with its claim, so that a final sync is still possible. The policy it had is
// remembered twice before: in the status, and on the volume by the same write that changes the policy.
func (r *sourceRun) retainVolume(ctx context.Context) error {
	pv := &corev1.PersistentVolume{}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: r.source.Status.SourceVolume.PVName}, pv); err != nil {
		return fmt.Errorf("read volume %s: %w", r.source.Status.SourceVolume.PVName, err)
	}
	original, taken := pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy]
	if !ptr.Deref(r.source.Spec.RetainSourceVolume, true) {
		if taken {
			return r.giveBackPolicy(ctx, pv)
		}
		return nil
	}
	if !taken {
		original = string(pv.Spec.PersistentVolumeReclaimPolicy)
	}
	r.source.Status.SourceVolume.OriginalReclaimPolicy = original
	if taken && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	if err := r.persist(ctx); err != nil {
		return err
	}
	return r.patchPolicy(ctx, pv, corev1.PersistentVolumeReclaimRetain, original)
}

// giveBackPolicy restores the policy that the volume had, unless another Source still needs it retained.
func (r *sourceRun) giveBackPolicy(ctx context.Context, pv *corev1.PersistentVolume) error {
	original := pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy]
	if original == "" {
		return nil
	}
	if needed, err := r.retainedBySource(ctx, r.source.Namespace, pv.Name, r.source.UID); needed || err != nil {
		return err
	}
	return r.patchPolicy(ctx, pv, corev1.PersistentVolumeReclaimPolicy(original), "")
}

// patchPolicy sets the reclaim policy together with the memory of the original one; empty removes it.
func (b *base) patchPolicy(ctx context.Context, pv *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy, original string) error {
	patched := pv.DeepCopy()
	patched.Spec.PersistentVolumeReclaimPolicy = policy
	if original == "" {
		delete(patched.Annotations, v1alpha1.AnnotationOriginalReclaimPolicy)
	} else {
		if patched.Annotations == nil {
			patched.Annotations = map[string]string{}
		}
		patched.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] = original
	}
	err := b.Client.Patch(ctx, patched, client.MergeFromWithOptions(pv, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("set the reclaim policy of volume %s: %w", pv.Name, err)
	}
	return nil
}

// leaveVolume gives a volume that is no longer this Source's its policy back; it may be gone.
func (r *sourceRun) leaveVolume(ctx context.Context, name string) error {
	pv := &corev1.PersistentVolume{}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: name}, pv); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read volume %s: %w", name, err)
	}
	if reference := pv.Spec.ClaimRef; reference != nil && reference.Namespace == r.Options.VaultNamespace {
		return nil // a Destination has it by now
	}
	if there, err := r.claimed(ctx, pv); err != nil || there {
		if err != nil {
			return err
		}
		return r.giveBackPolicy(ctx, pv)
	}
	// Its claim is gone: with the policy Delete the provisioner would remove the data at once. Whoever deleted the claim
	// decides about them.
	if original, taken := pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy]; taken {
		r.note(r.source, corev1.EventTypeNormal, "VolumeRetained", "LeaveVolume",
			"volume %s has no claim any more and stays; its reclaim policy was %s and is Retain", pv.Name, original)
	}
	return nil
}

// claimed tells whether the claim that a volume refers to is there. With the policy Delete the end of that claim is the end
// of the volume, so without one no volume gets that policy.
func (b *base) claimed(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	reference := pv.Spec.ClaimRef
	if reference == nil {
		return false, nil
	}
	claim, err := b.findClaim(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name})
	return claim != nil && claim.UID == reference.UID, err
}

// finalize stops what runs, removes the copies, and gives the volume its policy back.
func (r *sourceRun) finalize(ctx context.Context) error {
	if err := r.removeChildren(ctx); err != nil {
		return err
	}
	if err := r.leaveFence(ctx); err != nil {
		return err
	}
	if recorded := r.source.Status.SourceVolume; recorded != nil {
		if err := r.leaveVolume(ctx, recorded.PVName); err != nil {
			return err
		}
	}
	r.forget(client.ObjectKeyFromObject(r.source))
	r.shown.forget(r.source.UID)
	return r.release(ctx, r.source)
}
