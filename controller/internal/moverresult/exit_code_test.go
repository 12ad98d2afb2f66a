// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"bufio"
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

// The reasons are the engine's: its list of errors is the one source.
func TestReasonsMatchTheEngine(t *testing.T) {
	file, err := os.Open("../../../engine/base/error_codes.def")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	row := regexp.MustCompile(`^VF_ERROR\(k\w+, (\d+), \w+, "(\w+)"`)
	seen := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "// Below") {
			break
		}
		m := row.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		seen++
		code, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if ReasonOf(code) != m[2] {
			t.Errorf("code %d: reason %s here, %s in the engine", code, ReasonOf(code), m[2])
		}
	}
	if seen < 10 {
		t.Errorf("only %d rows found", seen)
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
