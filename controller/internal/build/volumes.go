// SPDX-License-Identifier: Apache-2.0

package build

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// ClaimInput is all that a claim of ours depends on.
type ClaimInput struct {
	Child            Child
	Annotations      map[string]string
	StorageClassName *string
	AccessModes      []corev1.PersistentVolumeAccessMode
	VolumeMode       corev1.PersistentVolumeMode
	Size             resource.Quantity
	// FromSnapshot or FromClaim names what the content comes from, in the same namespace; both empty: an empty volume.
	FromSnapshot string
	FromClaim    string
	// VolumeName is the volume that the claim is to be bound to; empty: a new one.
	VolumeName string
}

// Claim is a claim of ours: a staging volume, or the copy of a volume.
func Claim(in ClaimInput) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: in.Child.meta(in.Annotations),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      in.AccessModes,
			StorageClassName: in.StorageClassName,
			VolumeMode:       ptr.To(in.VolumeMode),
			VolumeName:       in.VolumeName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: in.Size},
			},
		},
	}
	switch {
	case in.FromSnapshot != "":
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{
			APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: in.FromSnapshot,
		}
	case in.FromClaim != "":
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: in.FromClaim}
	}
	return claim
}

// ClaimFor is a claim of ours for a volume that exists.
func ClaimFor(child Child, pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	return Claim(ClaimInput{
		Child:            child,
		StorageClassName: ptr.To(pv.Spec.StorageClassName),
		AccessModes:      pv.Spec.AccessModes,
		VolumeMode:       ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem),
		Size:             pv.Spec.Capacity[corev1.ResourceStorage],
		VolumeName:       pv.Name,
	})
}

// SnapshotInput is all that a snapshot of ours depends on.
type SnapshotInput struct {
	Child       Child
	Annotations map[string]string
	// ClassName is empty for the driver's default.
	ClassName string
	ClaimName string
}

// Snapshot is the snapshot of a claim.
func Snapshot(in SnapshotInput) *snapshotv1.VolumeSnapshot {
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: in.Child.meta(in.Annotations),
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(in.ClaimName)},
		},
	}
	if in.ClassName != "" {
		snapshot.Spec.VolumeSnapshotClassName = ptr.To(in.ClassName)
	}
	return snapshot
}
