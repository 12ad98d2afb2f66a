// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// deleter removes volumes that nobody claims any more and whose policy is Delete.
type deleter struct{ *Node }

func (d *deleter) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("deleter").WithOptions(anyName).
		For(&corev1.PersistentVolume{}).Complete(d)
}

// Reconcile removes the object first, under its version, so that a volume whose policy has just become Retain
// keeps its content.
func (d *deleter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	volume := &corev1.PersistentVolume{}
	if err := d.client.Get(ctx, request.NamespacedName, volume); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ours(volume) || volume.Annotations[provisionedByAnnotation] != Driver ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return ctrl.Result{}, nil
	}
	exact := client.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}
	if err := d.client.Delete(ctx, volume, exact); err != nil {
		return ctrl.Result{RequeueAfter: retryDelay}, client.IgnoreNotFound(ignoreConflict(err))
	}
	return ctrl.Result{}, d.Store.Delete(volume.Spec.CSI.VolumeHandle)
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
