// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func intString(name string) intstr.IntOrString { return intstr.FromString(name) }

func makeExecutable(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
