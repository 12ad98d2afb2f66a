// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// adoptVolume takes the volume of a claim that was left behind as the staging volume; what it holds is then brought up to
// date instead of being sent anew. The claim may be there, being deleted or gone.
func (r *destinationRun) adoptVolume(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	status := &r.destination.Status
	if fence := status.Fence; fence != nil && (r.destination.Spec.Adopt == nil || r.destination.Spec.Adopt.PVCName != fence.PVCName) {
		if err := r.giveBack(ctx, r.taking(fence.PVName, fence.PVCName)); err != nil {
			return nil, err
		}
		return nil, lookAgain("another staging volume", time.Millisecond)
	}
	pvcName := r.destination.Spec.Adopt.PVCName
	pv, err := r.leftBehind(ctx, pvcName)
	if err != nil {
		return nil, err
	}
	if err := r.take(ctx, r.taking(pv.Name, pvcName)); err != nil {
		var used *inUseError
		if errors.As(err, &used) {
			message := fmt.Sprintf("claim %s cannot be adopted: %s", pvcName, used.who)
			r.inUseNoted(message)
			return nil, lookAgain("the end of its use", usePoll)
		}
		r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonStagingMissing, fmt.Sprintf("volume %s of claim %s is being adopted", pv.Name, pvcName))
		return nil, err
	}
	claim, err := r.findClaim(ctx, r.key(r.childSet))
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, lookAgain("the staging claim", deletionPoll)
	}
	status.Fence = nil
	// What it holds is not what any peer sent.
	status.Staging = &v1alpha1.StagingVolume{PVName: pv.Name, Dirty: true, Cut: true}
	if err := r.persist(ctx); err != nil {
		return nil, err
	}
	r.note(r.destination, corev1.EventTypeNormal, "Adopted", "Adopt", "volume %s, which claim %s had, receives from now on", pv.Name, pvcName)
	return claim, nil
}

// makeRoom removes a staging claim that this Destination made before it was told to adopt, and into which nothing was
// received, once there is something to adopt.
func (r *destinationRun) makeRoom(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	taken, err := r.wasTaken(ctx, claim)
	// One that is older than the Destination may hold what another one of its name has received.
	if err != nil || taken || claim.CreationTimestamp.Before(&r.destination.CreationTimestamp) {
		return err
	}
	if _, err := r.leftBehind(ctx, r.destination.Spec.Adopt.PVCName); err != nil {
		return err
	}
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonWaitingForTrigger, "nobody listens: the empty staging volume makes room for the adopted one")
	if err := r.endListener(ctx, false); err != nil {
		return err
	}
	if err := r.awaitGone(ctx, r.destination, claim, r.key(r.childSet)); err != nil {
		return err
	}
	return lookAgain("the adoption", time.Millisecond)
}

// wasTaken tells whether a staging claim has a volume that was a user's.
func (r *destinationRun) wasTaken(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	pv, err := r.findPV(ctx, claim.Spec.VolumeName)
	if err != nil || pv == nil {
		return false, err
	}
	return pv.Annotations[v1alpha1.AnnotationFencedAt] != "" || pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] != "", nil
}

// inUseNoted says in the conditions who is in the way of an adoption.
func (r *destinationRun) inUseNoted(message string) {
	r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonInUse, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
}

// leftBehind finds the volume that a claim of that name has or had: as a Source of the claim recorded it, as the claim
// says, or as the volume itself still says.
func (r *destinationRun) leftBehind(ctx context.Context, pvcName string) (*corev1.PersistentVolume, error) {
	if fence := r.destination.Status.Fence; fence != nil {
		pv, err := r.needed(ctx, fence.PVName, pvcName)
		if err != nil || refers(pv, r.Options.VaultNamespace, r.childSet) {
			return pv, err
		}
		return pv, r.awaitFinalSync(ctx, pv, pvcName)
	}
	if err := r.awaitFinalSync(ctx, nil, pvcName); err != nil {
		return nil, err
	}
	recorded, err := r.recordedVolume(ctx, pvcName)
	if err != nil || recorded != nil {
		return recorded, err
	}
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.destination.Namespace, Name: pvcName})
	if err != nil {
		return nil, err
	}
	if claim != nil && claim.Spec.VolumeName != "" {
		return r.needed(ctx, claim.Spec.VolumeName, pvcName)
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := r.APIReader.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("look for the volume of claim %s: %w", pvcName, err)
	}
	var found []string
	for i := range volumes.Items {
		if refers(&volumes.Items[i], r.destination.Namespace, pvcName) {
			found = append(found, volumes.Items[i].Name)
		}
	}
	if len(found) == 1 {
		return r.needed(ctx, found[0], pvcName)
	}
	message := fmt.Sprintf("no volume of claim %s is left; remove spec.adopt to receive everything into a new volume", pvcName)
	if len(found) > 1 {
		message = fmt.Sprintf("several volumes were of claim %s: %s; delete those that are not meant", pvcName, strings.Join(found, ", "))
	}
	return nil, r.missing(v1alpha1.ReasonStagingMissing, message)
}

func (r *destinationRun) needed(ctx context.Context, pvName, pvcName string) (*corev1.PersistentVolume, error) {
	pv, err := r.findPV(ctx, pvName)
	if err == nil && pv == nil {
		err = r.missing(v1alpha1.ReasonStagingMissing, fmt.Sprintf(
			"volume %s of claim %s is gone; remove spec.adopt to receive everything into a new volume", pvName, pvcName))
	}
	return pv, err
}

// recordedVolume is what a Source of the claim knows, for a claim that is gone or has another volume by now.
func (r *destinationRun) recordedVolume(ctx context.Context, pvcName string) (*corev1.PersistentVolume, error) {
	list := &v1alpha1.SourceList{}
	if err := r.APIReader.List(ctx, list, client.InNamespace(r.destination.Namespace)); err != nil {
		return nil, fmt.Errorf("look for a Source of claim %s: %w", pvcName, err)
	}
	for i := range list.Items {
		source := &list.Items[i]
		if source.Spec.Source != pvcName || source.Status.SourceVolume == nil || !v1alpha1.BuiltInMethod(source.Spec.ReplicationMethod) {
			continue
		}
		pv, err := r.findPV(ctx, source.Status.SourceVolume.PVName)
		if err != nil {
			return nil, err
		}
		if pv == nil {
			continue
		}
		if refers(pv, r.Options.VaultNamespace, names.FinalSync(source.Namespace, source.Name)) {
			return pv, r.awaitFinalSync(ctx, pv, pvcName)
		}
		if refers(pv, source.Namespace, pvcName) {
			return pv, nil
		}
	}
	return nil, nil
}

// awaitFinalSync waits while a final sync of this namespace needs the volume of a claim, also one that was asked for and has
// not taken it yet: what it is to send would otherwise stay here, and whoever waits for it would wait for ever.
func (r *destinationRun) awaitFinalSync(ctx context.Context, pv *corev1.PersistentVolume, pvcName string) error {
	list := &v1alpha1.SourceList{}
	if err := r.APIReader.List(ctx, list, client.InNamespace(r.destination.Namespace)); err != nil {
		return fmt.Errorf("look for a final sync of claim %s: %w", pvcName, err)
	}
	for i := range list.Items {
		source := &list.Items[i]
		has := pv != nil && refers(pv, r.Options.VaultNamespace, names.FinalSync(source.Namespace, source.Name))
		if has && !finalSyncOver(source) || source.Spec.Source == pvcName && finalSyncAhead(source) {
			message := fmt.Sprintf("the final sync of Source %s comes first; it still needs the volume of claim %s", source.Name, pvcName)
			r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonInUse, message)
			r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
			return lookAgain("the final sync of Source "+source.Name, usePoll)
		}
	}
	return nil
}

// fitsAdopted says if the adopted volume is not what the parameters ask for.
func (r *destinationRun) fitsAdopted(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if has := ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem); has != r.params.VolumeMode {
		return r.reject(ctx, v1alpha1.ReasonInvalidParameter, fmt.Sprintf("parameter volumeMode: the volume is %s", has))
	}
	return nil
}
