// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the tests of deploy/: the manifests, the kustomization, the chart and the examples.
package deploy
