// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/moverresult"
)

// askListener shows what the listening mover knows, at most every few seconds: progress, or that it has refused a peer.
func (r *destinationRun) askListener(ctx context.Context, mover moverJob) {
	if !r.shown.due(r.destination.UID, r.Clock.Now()) {
		return
	}
	status := &r.destination.Status
	status.MethodStatus = r.showProgress(ctx, mover, status.MethodStatus)
	r.showRefusal(ctx, mover)
}

// showRefusal says that a peer was refused, as the Source's condition does. Unlike a Source's mover, one that listens goes
// on after it, so it has to be asked. What it says stays until a transfer has completed.
func (r *destinationRun) showRefusal(ctx context.Context, mover moverJob) {
	refusal, err := r.Progress.FetchRefusal(ctx, mover.pod.Status.PodIP)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the mover cannot be asked for refusals", "pod", mover.pod.Name, "error", err.Error())
		return
	}
	if refusal == nil {
		return
	}
	reason := peerReason(refusal.Reason)
	known := r.set.Says(v1alpha1.ConditionPeerVerified, reason, refusal.Message)
	r.set.False(v1alpha1.ConditionPeerVerified, reason, refusal.Message)
	if known {
		return
	}
	r.note(r.destination, corev1.EventTypeWarning, "IdentityMismatch", "Receive", "%s", refusal.Message)
}

// peerReason is what PeerVerified says for a mover's reason.
func peerReason(reason string) string {
	switch reason {
	case v1alpha1.ReasonStaleEpoch, v1alpha1.ReasonSourceBehindPeer:
		return reason
	case moverresult.ReasonProtocolMismatch:
		return v1alpha1.ReasonEngineIncompatible
	}
	return v1alpha1.ReasonPeerIdentityMismatch
}
