// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"volferry.io/controller/api/v1alpha1"
)

// copyOf keeps what a directory or device holds now.
func (w *world) copyOf(volume string, mode corev1.PersistentVolumeMode) string {
	w.Helper()
	kept := filepath.Join(w.TempDir(), "copy")
	command := exec.Command("cp", "-r", volume, kept)
	if mode == corev1.PersistentVolumeBlock {
		command = exec.Command("dd", "if="+volume, "of="+kept, "bs=1M")
	}
	if text, err := command.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, text)
	}
	return kept
}

// An older image that is named is promoted with what it held then, and not with what arrived since.
func TestOlderImageIsPromoted(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Snapshot", "Clone"} {
		for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
			t.Run(method+string(mode), func(t *testing.T) {
				t.Parallel()
				if mode == corev1.PersistentVolumeBlock {
					if err := loopDevicesWork(); err != nil {
						t.Skip("no loop devices here: ", err)
					}
				}
				w := newWorld(t)
				data := w.replica(method, mode, "keepImages", "3")
				first := w.destination("p").Status.LatestImage.Name
				then := w.copyOf(data, mode)
				w.fill(fileOf(data, mode), 1000, 5000)
				w.demand("p", "2")
				w.eventually(30*time.Second, "the second image", func() bool { return len(w.destination("p").Status.Images) == 2 })
				w.promote(v1alpha1.PromoteSpec{
					PVCName: "db", Image: first,
					Metadata: &v1alpha1.PromoteMetadata{Annotations: map[string]string{"example.com/restored": "yes"}},
				})
				w.promotedReason(v1alpha1.ReasonPromoted)
				w.bound("db", corev1.PersistentVolumeReclaimDelete)
				if !same(then, w.path(w.namespace, "db")) {
					t.Error("the promoted volume does not hold what the older image held")
				}
				if same(data, w.path(w.namespace, "db")) {
					t.Error("the promoted volume holds what arrived later")
				}
				if got := w.destination("p").Status.Promotion.Image; got != first {
					t.Errorf("the status says that image %s was promoted, not %s", got, first)
				}
				if w.pvc("db").Annotations["example.com/restored"] != "yes" {
					t.Errorf("the claim has annotations %v", w.pvc("db").Annotations)
				}
			})
		}
	}
}

// A volume of a class that waits for a first pod is promoted without one, to a claim that waits and to one that is made.
func TestPromotionWithLateBinding(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{true, false} {
		t.Run(map[bool]string{true: "pending", false: "none"}[waits], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			data := w.replica("Snapshot", corev1.PersistentVolumeFilesystem, "storageClassName", lateClass)
			waiting := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: ptr.To(lateClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Mi")}},
				},
			}
			if waits {
				w.create(waiting)
			}
			w.promote(v1alpha1.PromoteSpec{PVCName: "db"})
			w.promotedReason(v1alpha1.ReasonPromoted)
			w.bound("db", corev1.PersistentVolumeReclaimDelete)
			if !same(data, w.path(w.namespace, "db")) {
				t.Error("the promoted volume differs from the source")
			}
			if waits && w.pvc("db").UID != waiting.UID {
				t.Error("the claim that waited was replaced")
			}
		})
	}
}
