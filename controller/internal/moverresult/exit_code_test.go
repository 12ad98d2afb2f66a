// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPermanent(t *testing.T) {
	if got := PermanentExitCodes(); !slices.Equal(got, []int32{2, 11, 12, 20, 23, 30}) {
		t.Errorf("got %v", got)
	}
	for _, code := range []int{-1, 0, 1, 3, 4, 10, 13, 21, 22, 137, 143, 255, 1 << 40} {
		if Permanent(code) {
			t.Errorf("%d is permanent", code)
		}
	}
}

// docs/mover.md is the contract: its table and ours say the same.
func TestReasonsMatchTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/mover.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| ([0-9, ]+) \\| (?:`(\\w+)`[^|]*)?\\| (.*) \\|$")
	seen := 0
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		for number := range strings.SplitSeq(m[1], ", ") {
			code, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				t.Fatal(err)
			}
			seen++
			if ReasonOf(code) != m[2] || Permanent(code) != strings.Contains(m[3], "**permanent**") {
				t.Errorf("code %d: %s, permanent %v here, %q there", code, ReasonOf(code), Permanent(code), m[0])
			}
		}
	}
	if seen != len(outcomes)-1 { // 137 is kubelet's, not the mover's
		t.Errorf("%d codes in the document, %d here", seen, len(outcomes))
	}
}

func TestFromExit(t *testing.T) {
	tests := map[string]struct {
		code             int
		container        string
		wantCode         int
		wantReason, want string
		retryable        bool
	}{
		"out of memory":    {137, "OOMKilled", 137, "Killed", "OOMKilled", true},
		"refused":          {11, "Error", 11, "AuthenticationRefused", "same one", false},
		"own code":         {99, "", 99, "ExitCode99", "exit code 99", true},
		"success unproven": {0, "Completed", 1, "InternalError", "left no result", true},
		"hostile state":    {1, "x\ny", 1, "InternalError", "x y", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := FromExit(Source, tc.code, tc.container)
			if got.Outcome != Failed || got.ExitCode != tc.wantCode || got.Reason != tc.wantReason || got.Retryable != tc.retryable ||
				!strings.Contains(got.Summary(), tc.want) || strings.Contains(got.Summary(), "\n") {
				t.Errorf("got %+v, %q", got, got.Summary())
			}
		})
	}
}

func TestComplete(t *testing.T) {
	for code := range 256 {
		if Complete(code) != (code == 0 || code == 4) {
			t.Errorf("code %d", code)
		}
	}
}
