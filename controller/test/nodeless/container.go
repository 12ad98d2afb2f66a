// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// launch is a container made ready to be executed on this machine.
type launch struct {
	command     []string
	environment map[string]string
	// mounts leads from paths in the container to paths here.
	mounts   map[string]string
	volume   string // handle of the first claim's volume
	readOnly bool
	// protected are directories of claims that the container mounts read-only, writable the others; devices are the
	// block devices, secrets the folders of Secrets and ConfigMaps.
	protected, writable, devices, secrets []string
	// identity is whom the program runs as; nil for the caller.
	identity *identity
	// termination is the file that stands for the container's termination log.
	termination string
	folder      string
}

// waiting says why a container cannot be started yet, in the kubelet's words.
type waiting struct {
	reason string
	cause  error
}

func (w *waiting) Error() string { return w.reason + ": " + w.cause.Error() }

// prepare translates the pod's container. An error of type *waiting means: try again.
func (n *Node) prepare(ctx context.Context, pod *corev1.Pod, address string) (*launch, error) {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
		return nil, &waiting{"CreateContainerConfigError", errors.New("a pod here has one container")}
	}
	container := &pod.Spec.Containers[0]
	l := &launch{
		mounts: map[string]string{},
		folder: filepath.Join(n.root, "pods", string(pod.UID)),
	}
	l.termination = filepath.Join(l.folder, "termination")
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(l.termination, nil, 0o666); err != nil {
		return nil, err
	}
	// Whoever the container runs as may write it, whatever this process's mask is.
	if err := os.Chmod(l.termination, 0o666); err != nil {
		return nil, err
	}
	if err := n.mountVolumes(ctx, pod, container, l); err != nil {
		return nil, err
	}
	if err := n.setIdentity(pod, container, l); err != nil {
		return nil, &waiting{"CreateContainerConfigError", err}
	}
	var err error
	if l.environment, err = n.containerEnvironment(ctx, pod, container, address); err != nil {
		return nil, err
	}
	mover, err := n.setCommand(container, l)
	if err != nil {
		return nil, &waiting{"CreateContainerError", err}
	}
	if mover {
		n.translateMover(ctx, pod, container, l, address)
	}
	return l, nil
}

// setCommand finds the program, and says whether it is the mover: that is the entry point of its image.
func (n *Node) setCommand(container *corev1.Container, l *launch) (bool, error) {
	command := slices.Concat(container.Command, container.Args)
	mover := len(container.Command) == 0 || path.Base(container.Command[0]) == "volferry"
	if len(container.Command) == 0 {
		command = append([]string{"volferry"}, command...)
	}
	if !mover {
		program, err := exec.LookPath(command[0])
		if err != nil {
			return false, err
		}
		command[0] = program
	} else if command[0] = n.volferry; command[0] == "" {
		return true, errors.New("no mover program: set VOLFERRY")
	}
	l.command = command
	return mover, nil
}

// mountVolumes finds or fills a folder for each volume that the container mounts.
func (n *Node) mountVolumes(ctx context.Context, pod *corev1.Pod, container *corev1.Container, l *launch) error {
	places := map[string]string{} // volume name -> path here
	for index := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[index]
		place, err := n.mountVolume(ctx, pod.Namespace, volume, l)
		if err != nil {
			return &waiting{"ContainerCreating", fmt.Errorf("volume %s: %w", volume.Name, err)}
		}
		places[volume.Name] = place
	}
	for _, mount := range container.VolumeMounts {
		if place := places[mount.Name]; place != "" {
			l.sort(pod, &mount, place)
			l.mounts[path.Clean(mount.MountPath)] = filepath.Join(place, mount.SubPath)
		}
	}
	for _, device := range container.VolumeDevices {
		if place := places[device.Name]; place != "" {
			l.mounts[path.Clean(device.DevicePath)] = place
			l.devices = append(l.devices, place)
		}
	}
	return nil
}

// sort remembers what kind of volume is mounted, and whether the container may write to it.
func (l *launch) sort(pod *corev1.Pod, mount *corev1.VolumeMount, place string) {
	for _, volume := range pod.Spec.Volumes {
		claim := volume.PersistentVolumeClaim
		switch {
		case volume.Name != mount.Name:
		case claim != nil && (mount.ReadOnly || claim.ReadOnly), volume.EmptyDir != nil && mount.ReadOnly:
			l.protected = append(l.protected, place)
		case claim != nil:
			l.writable = append(l.writable, place)
		case volume.Secret != nil || volume.ConfigMap != nil:
			l.secrets = append(l.secrets, place)
		}
	}
}

func (n *Node) mountVolume(ctx context.Context, namespace string, volume *corev1.Volume, l *launch) (string, error) {
	folder := filepath.Join(l.folder, "volume-"+volume.Name)
	switch {
	case volume.PersistentVolumeClaim != nil:
		handle, err := n.claimHandle(ctx, namespace, volume.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return "", err
		}
		if l.volume == "" {
			l.volume, l.readOnly = handle, volume.PersistentVolumeClaim.ReadOnly
		}
		return n.Store.Path(handle)
	case volume.Secret != nil:
		secret := &corev1.Secret{}
		err := n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.Secret.SecretName}, secret)
		if err != nil && !(ptr.Deref(volume.Secret.Optional, false) && client.IgnoreNotFound(err) == nil) {
			return "", err
		}
		return folder, writeFiles(folder, secret.Data, volume.Secret.Items, volume.Secret.DefaultMode)
	case volume.ConfigMap != nil:
		config := &corev1.ConfigMap{}
		err := n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.ConfigMap.Name}, config)
		if err != nil && !(ptr.Deref(volume.ConfigMap.Optional, false) && client.IgnoreNotFound(err) == nil) {
			return "", err
		}
		content := map[string][]byte{}
		for name, text := range config.Data {
			content[name] = []byte(text)
		}
		return folder, writeFiles(folder, content, volume.ConfigMap.Items, volume.ConfigMap.DefaultMode)
	case volume.EmptyDir != nil:
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return "", err
		}
		return folder, os.Chmod(folder, 0o777)
	case volume.Projected != nil:
		return "", nil // a token for the API server, which a mover has no use for
	}
	return "", errors.New("a volume of this type cannot be had here")
}

// here translates a path in the container, or leaves it as it is where nothing is mounted.
func (l *launch) here(inside string) string {
	inside = path.Clean(inside)
	for folder := inside; ; folder = path.Dir(folder) {
		if place, found := l.mounts[folder]; found {
			return place + strings.TrimPrefix(inside, folder)
		}
		if folder == "/" || folder == "." {
			return inside
		}
	}
}
