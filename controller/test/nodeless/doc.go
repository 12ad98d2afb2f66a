// SPDX-License-Identifier: Apache-2.0

// Package nodeless stands for a node in a control plane that has none: for the kubelet, the volume driver
// and the Service proxy, each small and doing the real thing.
//
//   - A volume is a directory, or a sparse file with a loop device (store.go). Claims of our provisioner get
//     one, with the content of a claim or snapshot that they name; it grows with its claim and goes with its
//     volume object (provisioner.go, resizer.go, deleter.go).
//   - A VolumeSnapshot is a copy of a volume (snapshotter.go).
//   - A pod of a mover is bound to the node, runs as the real program with the pod's own command and
//     environment, and has its state reported as the kubelet would (scheduler.go, runner.go, container.go).
//   - A Service with a running pod is a listening socket on its ClusterIP that forwards (proxy.go).
//
// What decides about Jobs, binding of claims, garbage and protection is the real
// kube-controller-manager, see package controlplane.
//
// Left out: limits of resources, the size of a directory, read-only devices, probes, more than one container in a
// pod, and restarts within a pod.
package nodeless
