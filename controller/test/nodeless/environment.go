// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// containerEnvironment gives the variables of the container, with what they refer to.
func (n *Node) containerEnvironment(
	ctx context.Context, pod *corev1.Pod, container *corev1.Container, address string,
) (map[string]string, error) {
	values := map[string]string{}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			values[variable.Name] = variable.Value
			continue
		}
		value, found, err := n.valueFrom(ctx, pod, variable.ValueFrom, address)
		if err != nil {
			return nil, &waiting{"CreateContainerConfigError", fmt.Errorf("variable %s: %w", variable.Name, err)}
		}
		if found {
			values[variable.Name] = value
		}
	}
	return values, nil
}

func (n *Node) valueFrom(
	ctx context.Context, pod *corev1.Pod, source *corev1.EnvVarSource, address string,
) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := podField(pod, source.FieldRef.FieldPath, address)
		return value, err == nil, err
	case source.SecretKeyRef != nil:
		reference := source.SecretKeyRef
		secret := &corev1.Secret{}
		err := n.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: reference.Name}, secret)
		value, found := secret.Data[reference.Key]
		return keyed(string(value), found, reference.Optional, err)
	case source.ConfigMapKeyRef != nil:
		reference := source.ConfigMapKeyRef
		config := &corev1.ConfigMap{}
		err := n.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: reference.Name}, config)
		value, found := config.Data[reference.Key]
		return keyed(value, found, reference.Optional, err)
	}
	return "", false, fmt.Errorf("a source of this type cannot be had here")
}

func keyed(value string, found bool, optional *bool, err error) (string, bool, error) {
	if client.IgnoreNotFound(err) != nil {
		return "", false, err
	}
	if !found && !ptr.Deref(optional, false) {
		return "", false, fmt.Errorf("the object or its key is missing")
	}
	return value, found, nil
}

func podField(pod *corev1.Pod, field, address string) (string, error) {
	for prefix, values := range map[string]map[string]string{
		"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations,
	} {
		if key, found := strings.CutPrefix(field, prefix); found {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	switch field {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return address, nil
	case "status.hostIP":
		return hostIP, nil
	}
	return "", fmt.Errorf("the field %s cannot be had here", field)
}

// translateMover changes what the mover would find in its container into what it finds here: paths, its own address
// in place of all addresses, and an address in place of a name that the cluster's DNS would know.
func (n *Node) translateMover(
	ctx context.Context, pod *corev1.Pod, container *corev1.Container, l *launch, address string,
) {
	variables := l.environment
	if variables["VOLFERRY_VOLUME"] == "" {
		variables["VOLFERRY_VOLUME"] = "/dev/block"
		if _, mounted := l.mounts["/data"]; mounted {
			variables["VOLFERRY_VOLUME"] = "/data"
		}
	}
	variables["VOLFERRY_VOLUME"] = l.here(variables["VOLFERRY_VOLUME"])
	variables["VOLFERRY_KEYS"] = l.here(orDefault(variables["VOLFERRY_KEYS"], "/keys"))
	log := orDefault(container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	if orDefault(variables["VOLFERRY_TERMINATION_LOG"], corev1.TerminationMessagePathDefault) == log {
		variables["VOLFERRY_TERMINATION_LOG"] = l.termination
	}
	if variables["VOLFERRY_METRICS"] != "off" {
		variables["VOLFERRY_METRICS"] = onAddress(orDefault(variables["VOLFERRY_METRICS"], "[::]:9100"), address)
	}
	if slices.Contains(l.command, "destination") {
		variables["VOLFERRY_LISTEN"] = onAddress(orDefault(variables["VOLFERRY_LISTEN"], "[::]:8000"), address)
	}
	if name := variables["VOLFERRY_ADDRESS"]; name != "" {
		variables["VOLFERRY_ADDRESS"] = n.resolve(ctx, pod.Namespace, name)
	}
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// onAddress puts an address in place of "all addresses".
func onAddress(listen, address string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || host != "" && host != "::" && host != "0.0.0.0" {
		return listen
	}
	return net.JoinHostPort(address, port)
}

// resolve gives the ClusterIP for NAME, NAME.NAMESPACE or NAME.NAMESPACE.svc[.cluster.local] of a Service, and
// anything else as it is.
func (n *Node) resolve(ctx context.Context, namespace, name string) string {
	short := strings.TrimSuffix(strings.TrimSuffix(name, "."), ".cluster.local")
	parts := strings.Split(strings.TrimSuffix(short, ".svc"), ".")
	key := client.ObjectKey{Namespace: namespace, Name: parts[0]}
	switch {
	case len(parts) == 2:
		key.Namespace = parts[1]
	case len(parts) > 2:
		return name
	}
	service := &corev1.Service{}
	if n.client.Get(ctx, key, service) != nil || net.ParseIP(service.Spec.ClusterIP) == nil {
		return name
	}
	return service.Spec.ClusterIP
}
