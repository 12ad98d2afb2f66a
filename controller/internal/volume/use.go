// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SingleNode tells whether a volume of these modes can be attached to one node only.
func SingleNode(modes []corev1.PersistentVolumeAccessMode) bool {
	return !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}

// UsedBy tells whether a pod that is not over references a claim of its namespace, by name or as its ephemeral volume.
func UsedBy(pod *corev1.Pod, claim string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if reference := volume.PersistentVolumeClaim; reference != nil && reference.ClaimName == claim {
			return true
		}
		if volume.Ephemeral != nil && pod.Name+"-"+volume.Name == claim {
			return true
		}
	}
	return false
}
