// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Files of a volume arrive in a volume that the user's namespace does not show, by snapshots on both sides; the second
// sync sends what changed.
func TestFilesMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.claim("data", "64Mi", corev1.PersistentVolumeFilesystem)
	w.write(filepath.Join(data, "a/large"), 8<<20)
	w.write(filepath.Join(data, "small"), 100)
	w.must(os.Symlink("small", filepath.Join(data, "link")))
	w.pair("p", "data", nil, nil)
	w.demand("p", "1")
	w.eventually(30*time.Second, "an image", func() bool { return w.destination("p").Status.LatestImage != nil })
	if !same(data, w.staging("p")) {
		t.Error("the staging volume differs from the source")
	}
	first := w.source("p").Status
	w.write(filepath.Join(data, "small"), 200)
	w.demand("p", "2")
	w.eventually(30*time.Second, "the second image", func() bool { return w.destination("p").Status.LatestImage.Seq == 2 })
	if !same(data, w.staging("p")) {
		t.Error("after the second sync the staging volume differs from the source")
	}
	second := w.source("p").Status
	t.Logf("first %v, second %v", first.MethodStatus, second.MethodStatus)
}
