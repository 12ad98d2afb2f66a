// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
)

// boundByController is the binder's mark of a reference that it made and may take back.
const boundByController = "pv.kubernetes.io/bound-by-controller"

// claimRef is whom a volume belongs to. Without uid it is kept for whoever bears that name.
type claimRef struct {
	namespace, name string
	uid             types.UID
}

func (c claimRef) String() string { return c.namespace + "/" + c.name }

// refers tells whether a volume is kept for a claim of that name, whatever its uid.
func refers(pv *corev1.PersistentVolume, namespace, name string) bool {
	reference := pv.Spec.ClaimRef
	return reference != nil && reference.Namespace == namespace && reference.Name == name
}

// findPV reads a volume; nil where there is none.
func (b *base) findPV(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	if name == "" {
		return nil, nil
	}
	pv := &corev1.PersistentVolume{}
	if err := b.APIReader.Get(ctx, client.ObjectKey{Name: name}, pv); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read volume %s: %w", name, err)
	}
	return pv, nil
}

// findClaim reads a claim; nil where there is none.
func (b *base) findClaim(ctx context.Context, key client.ObjectKey) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := b.APIReader.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read claim %s: %w", key, err)
	}
	return claim, nil
}

// redirect points a volume at a claim. One write does that, sets the policy to Retain with the memory of the original one,
// and changes our annotations; empty values remove them. A reference is never taken away: the claim that still believes to
// be bound would take the volume back at once.
func (b *base) redirect(ctx context.Context, pv *corev1.PersistentVolume, to claimRef, annotations map[string]string) error {
	patched := pv.DeepCopy()
	if patched.Annotations == nil {
		patched.Annotations = map[string]string{}
	}
	if patched.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] == "" {
		patched.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] = string(pv.Spec.PersistentVolumeReclaimPolicy)
	}
	patched.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	// Its mark would permit the binder to clear the reference.
	delete(patched.Annotations, boundByController)
	for name, value := range annotations {
		if value == "" {
			delete(patched.Annotations, name)
		} else {
			patched.Annotations[name] = value
		}
	}
	patched.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: to.namespace, Name: to.name, UID: to.uid,
	}
	if err := b.Client.Patch(ctx, patched, client.MergeFromWithOptions(pv, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("give volume %s to claim %s: %w", pv.Name, to, err)
	}
	*pv = *patched
	return nil
}

// wants tells whether a claim has no volume yet and would be bound to this one, if it is kept for it.
func wants(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	return claim.DeletionTimestamp.IsZero() && !boundTo(claim, pv) &&
		(claim.Spec.VolumeName == pv.Name || claim.Spec.VolumeName == "" && misfit(claim, pv) == "")
}

// wake touches a claim of the user whose volume was given to it: the binder looks at it now and not at its next round.
func (b *base) wake(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	if claim.Annotations[v1alpha1.AnnotationRebound] == pv.ResourceVersion {
		return nil
	}
	patched := claim.DeepCopy()
	if patched.Annotations == nil {
		patched.Annotations = map[string]string{}
	}
	patched.Annotations[v1alpha1.AnnotationRebound] = pv.ResourceVersion
	return client.IgnoreNotFound(b.Client.Patch(ctx, patched, client.MergeFrom(claim)))
}

// retainedBySource tells whether a Source of the namespace keeps the volume's policy at Retain.
func (b *base) retainedBySource(ctx context.Context, namespace, pvName string, except types.UID) (bool, error) {
	list := &v1alpha1.SourceList{}
	if err := b.APIReader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("look for Sources of volume %s: %w", pvName, err)
	}
	for i := range list.Items {
		source := &list.Items[i]
		if source.UID != except && source.DeletionTimestamp.IsZero() && source.Status.SourceVolume != nil &&
			source.Status.SourceVolume.PVName == pvName && ptr.Deref(source.Spec.RetainSourceVolume, true) {
			return true, nil
		}
	}
	return false, nil
}
