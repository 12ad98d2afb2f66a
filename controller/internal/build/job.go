// SPDX-License-Identifier: Apache-2.0

package build

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/params"
)

// Where a mover finds its volume and keys, and where it serves progress: docs/mover.md.
const (
	DataPath      = "/data"
	DevicePath    = "/dev/block"
	KeysPath      = "/keys"
	MetricsPort   = 9100
	ContainerName = "mover"
)

// AnnotationAttempt on a Job names the try it makes: attempt id and number of the try.
const AnnotationAttempt = "volferry.io/attempt"

// TerminationGraceSeconds is more than the 10 s in which a mover ends on SIGTERM.
const TerminationGraceSeconds = 30

// JobInput is all that a mover Job depends on.
type JobInput struct {
	Child Child
	// Image and pull secrets of the mover.
	Image       string
	PullSecrets []string
	// Role is the mover's argument: source or destination.
	Role string
	Env  []corev1.EnvVar
	// Command in place of the mover's.
	Command []string
	// ClaimName is the claim that is mounted, and how; empty: a read-only emptiness, which cannot receive anything.
	ClaimName  string
	VolumeMode corev1.PersistentVolumeMode
	ReadOnly   bool
	// SecretName holds the key; SecretVersion changes when its content does.
	SecretName    string
	SecretVersion string
	// Attempt tells this try from others, see AnnotationAttempt.
	Attempt string
	// Pin is where the volume is in use already. It is no part of the hash: a workload that moves does not stop the mover.
	Pin Pin
	// Privileged lets the mover run as root with the capabilities that keep owners.
	Privileged bool
	Pod        params.Common
}

// Pin binds a mover to a node and lets it run there.
type Pin struct {
	// Node is empty for any node.
	Node        string
	Tolerations []corev1.Toleration
}

// Job is the Job that runs one mover once. Retries are the controller's, which tells causes apart; so the Job has none,
// and its failure policy marks those for which a retry would be in vain.
func Job(in JobInput) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: in.Child.meta(map[string]string{AnnotationAttempt: in.Attempt, v1alpha1.AnnotationInputHash: Hash(in.hashed())}),
		Spec: batchv1.JobSpec{
			Parallelism:          ptr.To[int32](1),
			Completions:          ptr.To[int32](1),
			BackoffLimit:         ptr.To[int32](0),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{
					Action: batchv1.PodFailurePolicyActionFailJob,
					OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
						ContainerName: ptr.To(ContainerName),
						Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
						Values:        moverresult.PermanentExitCodes(),
					},
				},
				{
					// A drained or preempted pod is replaced: nothing is wrong with the transfer.
					Action: batchv1.PodFailurePolicyActionIgnore,
					OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
						{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
					},
				},
			}},
			Template: in.podTemplate(),
		},
	}
	return job
}

// hashed is what makes another Job necessary when it changes: what enters the pod, and the key. Left out is what would only
// cut a transfer that runs: the node, the volume's size, which is information, and the image, which the next Job gets.
func (in JobInput) hashed() any {
	in.Pin, in.Image, in.PullSecrets = Pin{}, "", nil
	in.Env = slices.DeleteFunc(slices.Clone(in.Env), func(v corev1.EnvVar) bool { return v.Name == "VOLFERRY_VOLUME_SIZE" })
	return []any{in.podTemplate(), in.SecretVersion, in.Attempt}
}

func (in JobInput) podTemplate() corev1.PodTemplateSpec {
	labels := map[string]string{}
	maps.Copy(labels, in.Pod.MoverPodLabels)
	maps.Copy(labels, in.Child.labels())
	template := corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			ServiceAccountName:            in.Pod.MoverServiceAccount,
			TerminationGracePeriodSeconds: ptr.To[int64](TerminationGraceSeconds),
			SecurityContext:               in.podSecurity(),
			Affinity:                      in.affinity(),
			Tolerations:                   slices.Concat(in.Pod.MoverTolerations, in.Pin.Tolerations),
			Containers:                    []corev1.Container{in.container()},
			Volumes:                       in.volumes(),
		},
	}
	template.Labels = labels
	template.Annotations = map[string]string{v1alpha1.AnnotationOwner: in.Child.meta(nil).Annotations[v1alpha1.AnnotationOwner]}
	for _, name := range in.PullSecrets {
		template.Spec.ImagePullSecrets = append(template.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return template
}

func (in JobInput) container() corev1.Container {
	container := corev1.Container{
		Name:                     ContainerName,
		Image:                    in.Image,
		Command:                  []string{"volferry", "mover", in.Role},
		Env:                      in.Env,
		SecurityContext:          in.containerSecurity(),
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Ports:                    []corev1.ContainerPort{{Name: "metrics", ContainerPort: MetricsPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts:             []corev1.VolumeMount{{Name: "keys", MountPath: KeysPath, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
	}
	if len(in.Command) > 0 {
		container.Command = in.Command
	}
	if in.Role == "destination" {
		container.Ports = append(container.Ports,
			corev1.ContainerPort{Name: "transfer", ContainerPort: params.DefaultPort, Protocol: corev1.ProtocolTCP})
	}
	if in.Pod.MoverResources != nil {
		container.Resources = *in.Pod.MoverResources
	}
	switch {
	case in.VolumeMode == corev1.PersistentVolumeBlock && in.ClaimName == "":
		// A file stands for the device: only the mode counts, and nobody can write there.
		container.Env = append(slices.Clone(container.Env), corev1.EnvVar{Name: "VOLFERRY_VOLUME", Value: KeysPath + "/id"})
	case in.VolumeMode == corev1.PersistentVolumeBlock:
		container.VolumeDevices = []corev1.VolumeDevice{{Name: "volume", DevicePath: DevicePath}}
	default:
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: "volume", MountPath: DataPath, ReadOnly: in.ReadOnly})
	}
	return container
}

func (in JobInput) volumes() []corev1.Volume {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: in.ClaimName}
	// A file system is mounted writable and bound read-only into the container: a read-only mount could not replay a
	// journal. A device has no such half-way.
	claim.ReadOnly = in.ReadOnly && in.VolumeMode == corev1.PersistentVolumeBlock
	volume := corev1.VolumeSource{PersistentVolumeClaim: claim}
	if in.ClaimName == "" {
		volume = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return []corev1.Volume{
		{Name: "volume", VolumeSource: volume},
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: in.SecretName,
			// Readable for any uid the mover runs as; the mount is seen by this container alone.
			DefaultMode: ptr.To[int32](0o444),
		}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}
