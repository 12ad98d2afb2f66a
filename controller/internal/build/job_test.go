// SPDX-License-Identifier: Apache-2.0

package build

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/params"
)

// input of a Job; changes are applied in order.
func input(changes ...func(*JobInput)) JobInput {
	owner := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u"}}
	in := JobInput{
		Child: Child{Kind: "Source", Owner: owner, Namespace: "ns", Name: "vf-src-1", Set: "vf-src-1"},
		Image: "volferry:1", Role: "source", ClaimName: "data", VolumeMode: corev1.PersistentVolumeFilesystem,
		ReadOnly: true, SecretName: "key", Attempt: "x/1",
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func destination(in *JobInput) {
	in.Child.Kind, in.Role, in.ReadOnly = "Destination", "destination", false
}

func block(in *JobInput) { in.VolumeMode = corev1.PersistentVolumeBlock }

func TestJobFailurePolicy(t *testing.T) {
	job := Job(input())
	if *job.Spec.BackoffLimit != 0 || job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("the Job would retry by itself")
	}
	rules := job.Spec.PodFailurePolicy.Rules
	if rules[0].Action != batchv1.PodFailurePolicyActionFailJob || !slices.Equal(rules[0].OnExitCodes.Values, moverresult.PermanentExitCodes()) {
		t.Errorf("the first rule is %+v", rules[0])
	}
	if rules[1].Action != batchv1.PodFailurePolicyActionIgnore || rules[1].OnPodConditions[0].Type != corev1.DisruptionTarget {
		t.Errorf("the second rule is %+v", rules[1])
	}
}

func TestJobIsRestricted(t *testing.T) {
	spec := Job(input()).Spec.Template.Spec
	container := spec.Containers[0]
	if *spec.AutomountServiceAccountToken || !*spec.SecurityContext.RunAsNonRoot ||
		spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", spec.SecurityContext)
	}
	security := container.SecurityContext
	if *security.AllowPrivilegeEscalation || *security.Privileged || !*security.ReadOnlyRootFilesystem ||
		!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) != 0 {
		t.Errorf("container: %+v", security)
	}
	if spec.SecurityContext.FSGroup != nil {
		t.Error("the volume of a source would be given to another group")
	}
}

func TestJobFSGroup(t *testing.T) {
	if got := Job(input(destination)).Spec.Template.Spec.SecurityContext.FSGroup; got == nil || *got != unprivilegedID {
		t.Errorf("a staging volume of files has group %v", got)
	}
	if got := Job(input(destination, block)).Spec.Template.Spec.SecurityContext.FSGroup; got != nil {
		t.Errorf("a device has group %v", *got)
	}
	own := func(in *JobInput) {
		in.Pod.MoverSecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](5), RunAsUser: ptr.To[int64](6)}
	}
	got := Job(input(destination, own)).Spec.Template.Spec.SecurityContext
	if *got.FSGroup != 5 || *got.RunAsUser != 6 {
		t.Errorf("the user's own became %+v", got)
	}
}

func TestJobPrivileged(t *testing.T) {
	spec := Job(input(func(in *JobInput) { in.Privileged = true })).Spec.Template.Spec
	if *spec.SecurityContext.RunAsUser != 0 || spec.SecurityContext.RunAsNonRoot != nil {
		t.Errorf("pod: %+v", spec.SecurityContext)
	}
	security := spec.Containers[0].SecurityContext
	if !slices.Equal(security.Capabilities.Add, metadataCapabilities) || *security.AllowPrivilegeEscalation || *security.Privileged {
		t.Errorf("container: %+v", security)
	}
}

func TestJobVolume(t *testing.T) {
	files := Job(input()).Spec.Template.Spec
	if files.Volumes[0].PersistentVolumeClaim.ReadOnly || len(files.Containers[0].VolumeDevices) != 0 {
		t.Error("files: the claim itself must be mounted writable, so that a journal can be replayed")
	}
	mount := files.Containers[0].VolumeMounts[2]
	if mount.MountPath != DataPath || !mount.ReadOnly {
		t.Errorf("files: %+v", mount)
	}
	device := Job(input(block)).Spec.Template.Spec
	if !device.Volumes[0].PersistentVolumeClaim.ReadOnly || device.Containers[0].VolumeDevices[0].DevicePath != DevicePath {
		t.Error("device: it must be read-only and at its path")
	}
	if slices.ContainsFunc(device.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == DataPath }) {
		t.Error("device: it is mounted as files, too")
	}
}

func TestJobHash(t *testing.T) {
	hash := func(changes ...func(*JobInput)) string {
		return Job(input(changes...)).Annotations[v1alpha1.AnnotationInputHash]
	}
	base := hash()
	same := map[string]func(*JobInput){
		"status of the owner": func(in *JobInput) { in.Child.Owner.(*v1alpha1.Source).Status.Phase = "Idle" },
		"node":                func(in *JobInput) { in.Pin.Node = "n" },
		"image":               func(in *JobInput) { in.Image = "volferry:2" },
		"size":                func(in *JobInput) { in.Env = []corev1.EnvVar{{Name: "VOLFERRY_VOLUME_SIZE", Value: "1"}} },
		"capacity":            func(in *JobInput) { in.Pod.Capacity = ptr.To(resource.MustParse("1Gi")) },
	}
	for name, change := range same {
		if hash(change) != base {
			t.Errorf("%s: another hash", name)
		}
	}
	other := map[string]func(*JobInput){
		"uid of the owner": func(in *JobInput) { in.Child.Owner.(*v1alpha1.Source).UID = "v" },
		"environment":      func(in *JobInput) { in.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
		"key":              func(in *JobInput) { in.SecretVersion = "2" },
		"attempt":          func(in *JobInput) { in.Attempt = "x/2" },
		"labels":           func(in *JobInput) { in.Pod.MoverPodLabels = map[string]string{"a": "b"} },
	}
	for name, change := range other {
		if hash(change) == base {
			t.Errorf("%s: the same hash", name)
		}
	}
}

func TestJobLabelsAreOurs(t *testing.T) {
	job := Job(input(func(in *JobInput) {
		in.Pod.MoverPodLabels = map[string]string{"team": "x", v1alpha1.LabelOwnerUID: "forged"}
	}))
	labels := job.Spec.Template.Labels
	if labels["team"] != "x" || labels[v1alpha1.LabelOwnerUID] != "u" {
		t.Errorf("labels of the pod: %v", labels)
	}
}

func TestJobPinned(t *testing.T) {
	pin := func(in *JobInput) {
		in.Pin = Pin{Node: "n1", Tolerations: []corev1.Toleration{{Key: "dedicated"}}}
		in.Pod.MoverTolerations = []corev1.Toleration{{Key: "own"}}
		in.Pod.MoverAffinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpExists}}},
			}},
		}}
	}
	in := input(pin)
	spec := Job(in).Spec.Template.Spec
	if len(spec.Tolerations) != 2 {
		t.Errorf("tolerations: %+v", spec.Tolerations)
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 1 || term.MatchFields[0].Values[0] != "n1" {
			t.Errorf("an alternative is not pinned: %+v", term)
		}
	}
	for _, term := range in.Pod.MoverAffinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) != 0 {
			t.Error("the user's own affinity was changed")
		}
	}
}

func TestServiceSelectsTheMover(t *testing.T) {
	in := input(destination)
	service := Service(in.Child, &params.DestinationParams{Common: params.Common{Port: 9000}, ServiceType: corev1.ServiceTypeClusterIP})
	labels := Job(in).Spec.Template.Labels
	for name, value := range service.Spec.Selector {
		if labels[name] != value {
			t.Errorf("the pod's label %s is %q, selected is %q", name, labels[name], value)
		}
	}
	if port := service.Spec.Ports[0]; port.Port != 9000 || port.TargetPort.IntVal != params.DefaultPort {
		t.Errorf("port %+v", port)
	}
}

// A mover without a claim finds nothing that it could write to, but still says which mode it is of.
func TestJobWithoutAClaim(t *testing.T) {
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		spec := Job(input(destination, func(in *JobInput) { in.ClaimName, in.ReadOnly, in.VolumeMode = "", true, mode })).Spec.Template.Spec
		for _, volume := range spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				t.Errorf("%s: a claim is mounted: %+v", mode, volume)
			}
		}
		file := slices.ContainsFunc(spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "VOLFERRY_VOLUME" })
		data := slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == DataPath && m.ReadOnly })
		if block := mode == corev1.PersistentVolumeBlock; file != block || data == block || len(spec.Containers[0].VolumeDevices) > 0 {
			t.Errorf("%s: container %+v", mode, spec.Containers[0])
		}
	}
}

func TestClaimForAVolume(t *testing.T) {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			VolumeMode:  ptr.To(corev1.PersistentVolumeBlock),
		},
	}
	spec := ClaimFor(input().Child, pv).Spec
	// Without a class it must say so: a claim that says nothing gets the default class, and is never bound.
	if spec.VolumeName != "pv" || spec.StorageClassName == nil || *spec.StorageClassName != "" || *spec.VolumeMode != corev1.PersistentVolumeBlock ||
		spec.Resources.Requests.Storage().String() != "3Gi" || spec.AccessModes[0] != corev1.ReadWriteMany {
		t.Errorf("%+v", spec)
	}
}
