// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the linter that scripts/check-go runs.
package tools

import _ "honnef.co/go/tools/cmd/staticcheck"
