// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/volume"
)

// findVolume looks the claim and its volume up, and records which volume it is. A Source without a claim is dormant, not
// failed: it is the reverse relation that awaits a promotion.
func (r *sourceRun) findVolume(ctx context.Context) error {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: r.source.Namespace, Name: r.source.Spec.Source}
	if err := r.APIReader.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return r.dormant(fmt.Sprintf("claim %s does not exist; the Source starts once it does", key.Name))
		}
		return err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return r.dormant(fmt.Sprintf("claim %s is %s, not Bound", key.Name, phaseOf(claim)))
	}
	pv := &corev1.PersistentVolume{}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		return fmt.Errorf("read the volume of claim %s: %w", key.Name, err)
	}
	if !boundTo(claim, pv) {
		return r.dormant(fmt.Sprintf("volume %s of claim %s is in other hands: it was taken into the vault", pv.Name, key.Name))
	}
	r.claim = claim
	return r.recordVolume(ctx, pv)
}

func phaseOf(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase == "" {
		return "Pending"
	}
	return string(claim.Status.Phase)
}

// dormant waits for the claim, which is watched.
func (r *sourceRun) dormant(message string) error {
	r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonSourcePVCNotFound, message)
	r.set.False(v1alpha1.ConditionSynchronizing, r.waitingReason(), message)
	status := &r.source.Status
	if r.schedule != nil && status.ActiveSync == nil {
		// The ticks of this time are missed by nobody. The last one still counts, so that the first sync does not wait for
		// the next when the claim appears.
		if ticks, last := r.schedule.Missed(status.LastScheduleTime.Time, r.now); ticks > 1 {
			status.LastScheduleTime = &metav1.Time{Time: last.Add(-time.Second)}
		}
		status.NextSyncTime = nil
	}
	return waitFor("the claim")
}

// recordVolume keeps the volume's identity. Another volume under the same claim's name is not replicated before somebody
// says that this is meant: a new, empty one would wipe the replica.
func (r *sourceRun) recordVolume(ctx context.Context, pv *corev1.PersistentVolume) error {
	identity := volume.Of(pv)
	known := r.source.Status.SourceVolume
	promoted := r.takeLineage(pv)
	if promoted && known != nil && known.HandleHash != identity.HandleHash {
		if err := r.leaveVolume(ctx, known.PVName); err != nil {
			return err
		}
		known = nil
	}
	if known != nil && known.HandleHash != "" && known.HandleHash != identity.HandleHash {
		token := build.Hash([]string{known.HandleHash, identity.HandleHash, string(r.source.UID)})[:12]
		if !slices.Contains(r.source.Spec.Acknowledge, token) {
			return r.volumeChanged(known, pv, token)
		}
		if err := r.leaveVolume(ctx, known.PVName); err != nil {
			return err
		}
		known = nil
	}
	recorded := &v1alpha1.SourceVolume{
		PVCUID:     string(r.claim.UID),
		PVName:     pv.Name,
		Driver:     identity.Driver,
		HandleHash: identity.HandleHash,
		VolumeMode: string(ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)),
		Capacity:   ptr.To(pv.Spec.Capacity[corev1.ResourceStorage]),
	}
	if known != nil {
		recorded.OriginalReclaimPolicy = known.OriginalReclaimPolicy
	}
	r.source.Status.SourceVolume = recorded
	r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, "the claim is bound")
	if err := r.checkToken(ctx); err != nil {
		return err
	}
	if r.set.Reason(v1alpha1.ConditionPeerVerified) == "" || r.set.Reason(v1alpha1.ConditionPeerVerified) == v1alpha1.ReasonSourceVolumeChanged {
		r.set.Unknown(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonNotContacted, "no sync has reached the peer yet")
	}
	return nil
}

// takeLineage goes on from where a promotion of this volume put it: a later epoch than the Source's own. What was refused
// before then is of the past.
func (r *sourceRun) takeLineage(pv *corev1.PersistentVolume) bool {
	if !r.outranked(pv) {
		return false
	}
	status := &r.source.Status
	status.Lineage = &v1alpha1.SourceLineage{Lineage: *volume.LineageOf(pv)}
	if status.ActiveSync == nil {
		status.Retry = nil
	}
	r.set.Unknown(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonNotContacted, "the volume was promoted; no sync has reached the peer since")
	return true
}

// outranked tells whether a volume was promoted since this Source last knew it.
func (r *sourceRun) outranked(pv *corev1.PersistentVolume) bool {
	lineage, own := volume.LineageOf(pv), ""
	if r.source.Status.Lineage != nil {
		own = r.source.Status.Lineage.Epoch
	}
	return lineage != nil && volume.EpochCounter(lineage.Epoch) > volume.EpochCounter(own)
}

func (r *sourceRun) volumeChanged(known *v1alpha1.SourceVolume, pv *corev1.PersistentVolume, token string) error {
	message := fmt.Sprintf("claim %s is now bound to volume %s, it was %s; nothing is sent until spec.acknowledge has token=%s",
		r.source.Spec.Source, pv.Name, known.PVName, token)
	if r.set.Reason(v1alpha1.ConditionPeerVerified) != v1alpha1.ReasonSourceVolumeChanged {
		r.note(r.source, corev1.EventTypeWarning, "SourcePVCReplaced", "CheckVolume", "%s", message)
	}
	r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, "the claim is bound")
	r.set.False(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonSourceVolumeChanged, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
	return errStalled
}

// leastToken is the shortest token of a webhook, in bytes.
const leastToken = 16

// checkToken says if the webhook cannot work. The other triggers go on.
func (r *sourceRun) checkToken(ctx context.Context) error {
	hook := r.source.Spec.Trigger.Webhook
	if hook == nil {
		return nil
	}
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: hook.TokenSecret}, secret)
	switch {
	case apierrors.IsNotFound(err):
		r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonSecretNotFound,
			fmt.Sprintf("secret %s with the webhook's token does not exist", hook.TokenSecret))
	case apierrors.IsForbidden(err):
		r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonSecretForbidden, fmt.Sprintf(
			"the controller may not read secret %s; bind ClusterRole volferry-secret-reader to it in this namespace, see docs/controller.md",
			hook.TokenSecret))
	case err != nil:
		return err
	case len(secret.Data["token"]) < leastToken:
		r.set.False(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonSecretNotFound,
			fmt.Sprintf("secret %s is not usable: its `token` must have at least %d bytes", hook.TokenSecret, leastToken))
	default:
		return nil
	}
	r.next = sooner(r.next, dependencyPoll)
	return nil
}
