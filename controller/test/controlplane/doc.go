// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane for tests: etcd and kube-apiserver by
// controller-runtime's envtest, and kube-controller-manager beside them, so that the real Job, volume
// binder, garbage, protection, namespace and service account controllers act. All parts are plain
// processes that listen on loopback addresses; scripts/k8s-parts builds their programs.
//
// There is no kubelet, no volume driver and no kube-proxy: package nodeless stands for these.
//
// Nothing outlives the process that called Start, however that process ends: see guard.go.
package controlplane
