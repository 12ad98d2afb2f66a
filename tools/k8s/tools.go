// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the Kubernetes programs that scripts/k8s-parts builds, so that go.mod and
// go.sum carry every module they need and nothing else.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
