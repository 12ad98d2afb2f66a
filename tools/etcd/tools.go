// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the etcd server that scripts/k8s-parts builds. It is a module of its own
// because Kubernetes requires another version of etcd's client.
package tools

import _ "go.etcd.io/etcd/server/v3"
