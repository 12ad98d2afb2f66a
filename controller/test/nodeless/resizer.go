// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// resizer lets a volume grow when its bound claim asks for more. That the class allows it is checked by the API
// server.
type resizer struct{ *Node }

func (r *resizer) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("resizer").WithOptions(anyName).
		For(&corev1.PersistentVolumeClaim{}).Complete(r)
}

// Reconcile grows storage, volume and claim, in this order.
func (r *resizer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.client.Get(ctx, request.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted := claim.Spec.Resources.Requests.Storage()
	if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil ||
		wanted.Cmp(*claim.Status.Capacity.Storage()) <= 0 {
		return ctrl.Result{}, nil
	}
	volume := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil || !ours(volume) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.Store.Grow(volume.Spec.CSI.VolumeHandle, wanted.Value()); err != nil {
		return ctrl.Result{}, err
	}
	before := volume.DeepCopy()
	volume.Spec.Capacity[corev1.ResourceStorage] = *wanted
	if err := r.client.Patch(ctx, volume, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	claimBefore := claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = *wanted
	return ctrl.Result{}, r.client.Status().Patch(ctx, claim, client.MergeFrom(claimBefore))
}
