// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names diskrsync, a peer that bench/compare measures volferry beside, so that go.mod holds its version
// and go.sum its modules. bench/get-diskrsync builds it; no part of volferry does.
package tools

import _ "github.com/dop251/diskrsync/diskrsync"
