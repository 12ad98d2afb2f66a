// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// The binder asks the named provisioner for a volume by this annotation on the claim.
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// It leaves the deletion of a volume with this annotation to the named provisioner.
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
)

// anyName lets several nodes run in one process, each with controllers of the same names.
var anyName = controller.Options{SkipNameValidation: ptr.To(true)}

// provisioner makes a volume for each claim that the real binder asks one for.
type provisioner struct{ *Node }

func (p *provisioner) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("provisioner").WithOptions(anyName).
		For(&corev1.PersistentVolumeClaim{}).Complete(p)
}

// Reconcile provisions for one claim, as the external provisioner of a driver does.
func (p *provisioner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := p.client.Get(ctx, request.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if claim.Annotations[provisionerAnnotation] != Driver || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if hook := p.hooks.get().Provision; hook != nil {
		if err := hook(claim); err != nil {
			return ctrl.Result{RequeueAfter: retryDelay}, nil
		}
	}
	class := &storagev1.StorageClass{}
	if err := p.client.Get(ctx, client.ObjectKey{Name: ptr.Deref(claim.Spec.StorageClassName, "")}, class); err != nil {
		return ctrl.Result{}, err
	}
	ready, err := p.fill(ctx, claim)
	if err != nil || !ready {
		return ctrl.Result{RequeueAfter: retryDelay}, err
	}
	if err := p.client.Create(ctx, volumeFor(claim, class)); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

// fill makes the storage of a claim's volume with the content that it asks for; false means that this is not ready yet.
func (p *provisioner) fill(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	handle := volumeHandle(claim)
	size := claim.Spec.Resources.Requests.Storage().Value()
	source := claim.Spec.DataSource
	if source == nil {
		return true, p.Store.Create(handle, ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), size)
	}
	var origin string
	var err error
	switch source.Kind {
	case "PersistentVolumeClaim":
		origin, err = p.claimHandle(ctx, claim.Namespace, source.Name)
	case "VolumeSnapshot":
		origin, err = p.snapshotHandle(ctx, claim.Namespace, source.Name)
	default:
		return false, nil // for a populator, not for a driver
	}
	if err != nil || origin == "" {
		return false, client.IgnoreNotFound(err)
	}
	return true, p.Store.Copy(origin, handle, size)
}

// snapshotHandle gives the handle of a snapshot that is ready, else "".
func (n *Node) snapshotHandle(ctx context.Context, namespace, name string) (string, error) {
	snapshot := &snapshotv1.VolumeSnapshot{}
	if err := n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, snapshot); err != nil {
		return "", err
	}
	status := snapshot.Status
	if status == nil || !ptr.Deref(status.ReadyToUse, false) || status.BoundVolumeSnapshotContentName == nil {
		return "", nil
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: *status.BoundVolumeSnapshotContentName}, content); err != nil {
		return "", err
	}
	if content.Status == nil || content.Status.SnapshotHandle == nil {
		return "", fmt.Errorf("content %s has no handle", content.Name)
	}
	return *content.Status.SnapshotHandle, nil
}

func volumeHandle(claim *corev1.PersistentVolumeClaim) string { return "volume-" + string(claim.UID) }

// volumeFor builds the volume object of a claim, already referring to it, so that the binder has no choice.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{provisionedByAnnotation: Driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage(),
			},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			MountOptions:                  class.MountOptions,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: volumeHandle(claim)},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
}
