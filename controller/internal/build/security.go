// SPDX-License-Identifier: Apache-2.0

package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"volferry.io/controller/internal/names"
)

// unprivilegedID is the user of the mover image, and the group that owns the files of a staging volume by default.
const unprivilegedID = 10001

// metadataCapabilities let a mover that runs as root keep owners, modes and times of every file.
var metadataCapabilities = []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID"}

// podSecurity is what the user asked for, on top of defaults that satisfy the restricted pod security standard. A
// staging volume is given to the mover's group, since a fresh one belongs to root; a source's volume never is, for that
// would change the user's data.
func (in JobInput) podSecurity() *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{}
	if in.Pod.MoverSecurityContext != nil {
		security = in.Pod.MoverSecurityContext.DeepCopy()
	}
	if security.SeccompProfile == nil {
		security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if in.Privileged {
		if security.RunAsUser == nil && !ptr.Deref(security.RunAsNonRoot, false) {
			security.RunAsUser = ptr.To[int64](0)
		}
		return security
	}
	security.RunAsNonRoot = ptr.To(true)
	if in.Child.role() == names.RoleDestination && in.VolumeMode != corev1.PersistentVolumeBlock && security.FSGroup == nil {
		security.FSGroup = ptr.To[int64](unprivilegedID)
		security.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

func (in JobInput) containerSecurity() *corev1.SecurityContext {
	security := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Privileged:               ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if in.Privileged {
		security.Capabilities.Add = metadataCapabilities
		if len(in.Pod.MoverCapabilities) > 0 {
			security.Capabilities.Add = in.Pod.MoverCapabilities
		}
	}
	return security
}

// affinity is the user's, narrowed to the node where the volume is in use: a volume that is attached to one node alone
// can be read only there.
func (in JobInput) affinity() *corev1.Affinity {
	if in.Pin.Node == "" {
		return in.Pod.MoverAffinity
	}
	affinity := &corev1.Affinity{}
	if in.Pod.MoverAffinity != nil {
		affinity = in.Pod.MoverAffinity.DeepCopy()
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
	}
	// The terms are alternatives, so each of them is narrowed.
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{in.Pin.Node},
		})
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	return affinity
}
