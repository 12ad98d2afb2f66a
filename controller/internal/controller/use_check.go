// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/volume"
)

// inUse says who uses a volume that a claim of that name shows; empty: nobody. A pod that is being deleted still uses it,
// and whether the claim is being deleted plays no part. Where that cannot be read it is in use.
func (b *base) inUse(ctx context.Context, pv *corev1.PersistentVolume, namespace, claim string) string {
	pods := &corev1.PodList{}
	if err := b.APIReader.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return cannotTell("pods", err)
	}
	now, err := b.findClaim(ctx, client.ObjectKey{Namespace: namespace, Name: claim})
	if err != nil {
		return cannotTell("claims", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; volume.UsedBy(pod, claim) && !usesSuccessor(pod, now, pv) {
			return fmt.Sprintf("pod %s uses claim %s", pod.Name, claim)
		}
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := b.APIReader.List(ctx, attachments); err != nil {
		return cannotTell("attachments", err)
	}
	for i := range attachments.Items {
		attachment := &attachments.Items[i]
		if ptr.Deref(attachment.Spec.Source.PersistentVolumeName, "") == pv.Name {
			return fmt.Sprintf("volume %s is attached to node %s (VolumeAttachment %s)", pv.Name, attachment.Spec.NodeName, attachment.Name)
		}
	}
	return ""
}

// usesSuccessor tells of a pod that is no older than a claim of the same name with another volume: it has never seen the
// volume in question. A live StatefulSet makes such claims.
func usesSuccessor(pod *corev1.Pod, now *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	return now != nil && now.Spec.VolumeName != "" && now.Spec.VolumeName != pv.Name &&
		!pod.CreationTimestamp.Before(&now.CreationTimestamp)
}

func cannotTell(what string, err error) string {
	return "whether it is in use cannot be told: " + what + " cannot be read: " + moverresult.OneLine(err.Error(), 256)
}

// inUseError ends a reconcile because somebody uses a volume that is to be taken.
type inUseError struct{ who string }

func (e *inUseError) Error() string { return "in use: " + e.who }
