// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func needLoopDevices(t *testing.T) {
	t.Helper()
	if err := node.Store.LoopDevicesWork(); err != nil {
		t.Skip(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, length int) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content := make([]byte, length)
	if _, err := io.ReadFull(file, content); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestClaimIsBoundToADirectoryAndCloned(t *testing.T) {
	namespace := newNamespace(t)
	first := newClaim(t, namespace, "first", "plain")
	write(t, filepath.Join(bound(t, first), "file"), "content")
	clone := newClaim(t, namespace, "clone", "plain", from("PersistentVolumeClaim", "first"))
	path := bound(t, clone)
	if got := read(t, filepath.Join(path, "file"), 7); got != "content" {
		t.Fatalf("the clone has %q", got)
	}
	write(t, filepath.Join(path, "file"), "changed")
	original, err := node.ClaimPath(t.Context(), namespace, "first")
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(original, "file"), 7); got != "content" {
		t.Fatalf("a change of the clone came back: %q", got)
	}
}

func TestBlockVolumeGrowsAndIsCloned(t *testing.T) {
	needLoopDevices(t)
	namespace := newNamespace(t)
	claim := newClaim(t, namespace, "disk", "plain", block)
	device := bound(t, claim)
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	marker := bytes.Repeat([]byte("volferry"), 1024)
	if _, err := file.WriteAt(marker, 8<<20); err != nil {
		t.Fatal(err)
	}
	get(t, claim)
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("32Mi")
	if err := c.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t, claim, "the claim has grown", func() bool {
		return claim.Status.Capacity.Storage().Value() == 32<<20
	})
	if size, err := file.Seek(0, io.SeekEnd); err != nil || size != 32<<20 {
		t.Fatalf("the device has %d bytes, %v", size, err)
	}
	// The clone must also have what only the device's cache has.
	clone := newClaim(t, namespace, "clone", "plain", block, from("PersistentVolumeClaim", "disk"),
		func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("32Mi")
		})
	copied := make([]byte, len(marker))
	clonedDevice, err := os.Open(bound(t, clone))
	if err != nil {
		t.Fatal(err)
	}
	defer clonedDevice.Close()
	if _, err := clonedDevice.ReadAt(copied, 8<<20); err != nil || !bytes.Equal(copied, marker) {
		t.Fatalf("the clone differs, %v", err)
	}
}

func TestVolumeGoesWithItsClaimUnlessRetained(t *testing.T) {
	namespace := newNamespace(t)
	for _, retain := range []bool{false, true} {
		claim := newClaim(t, namespace, map[bool]string{false: "delete", true: "retain"}[retain], "plain")
		path := bound(t, claim)
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		get(t, volume)
		if retain {
			before := volume.DeepCopy()
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			if err := c.Patch(t.Context(), volume, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if retain {
			eventually(t, volume, "the volume is released", func() bool {
				return volume.Status.Phase == corev1.VolumeReleased
			})
			time.Sleep(3 * retryDelay)
			get(t, volume)
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("the retained volume has lost its content: %v", err)
			}
			continue
		}
		gone(t, volume)
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("the content of the deleted volume is still there: %v", err)
		}
	}
}

func gone(t *testing.T, object client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object)), nil
		})
	if err != nil {
		t.Fatalf("%s is still there: %v", object.GetName(), err)
	}
}

func newSnapshot(t *testing.T, namespace, name, claim string) *snapshotv1.VolumeSnapshot {
	t.Helper()
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim},
			VolumeSnapshotClassName: ptr.To("snapshots"),
		},
	}
	create(t, snapshot)
	return snapshot
}

func ready(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

func TestSnapshotIsCutFirstAndReadyLater(t *testing.T) {
	const delay = 1500 * time.Millisecond
	node.SetHooks(Hooks{SnapshotDelay: delay})
	defer node.SetHooks(Hooks{})
	namespace := newNamespace(t)
	claim := newClaim(t, namespace, "origin", "plain")
	path := filepath.Join(bound(t, claim), "file")
	write(t, path, "before")
	started := time.Now()
	snapshot := newSnapshot(t, namespace, "cut", "origin")
	eventually(t, snapshot, "the snapshot is bound", func() bool {
		return snapshot.Status != nil && snapshot.Status.BoundVolumeSnapshotContentName != nil
	})
	if ready(snapshot) {
		t.Fatal("the snapshot was ready without a delay")
	}
	write(t, path, "after!")
	// A claim made too early waits for the snapshot.
	restored := newClaim(t, namespace, "restored", "plain", from("VolumeSnapshot", "cut"))
	eventually(t, snapshot, "the snapshot is ready", func() bool { return ready(snapshot) })
	if passed := time.Since(started); passed < delay {
		t.Fatalf("ready after %s, want at least %s", passed, delay)
	}
	if got := snapshot.Status.RestoreSize.Value(); got != 16<<20 {
		t.Fatalf("restoreSize %d", got)
	}
	if got := read(t, filepath.Join(bound(t, restored), "file"), 6); got != "before" {
		t.Fatalf("the snapshot has %q, want what was there when it was cut", got)
	}
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: *snapshot.Status.BoundVolumeSnapshotContentName},
	}
	get(t, content)
	handle := *content.Status.SnapshotHandle
	if err := c.Delete(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	gone(t, snapshot)
	gone(t, content)
	if node.Store.Exists(handle) {
		t.Fatal("the data of the deleted snapshot is still there")
	}
}

func TestFailingSnapshotSaysSoAndRecovers(t *testing.T) {
	node.SetHooks(Hooks{Snapshot: func(*snapshotv1.VolumeSnapshot) error { return errors.New("the array is full") }})
	defer node.SetHooks(Hooks{})
	namespace := newNamespace(t)
	bound(t, newClaim(t, namespace, "origin", "plain"))
	snapshot := newSnapshot(t, namespace, "failing", "origin")
	eventually(t, snapshot, "the error is reported", func() bool {
		return snapshot.Status != nil && snapshot.Status.Error != nil &&
			*snapshot.Status.Error.Message == "the array is full" && !ready(snapshot)
	})
	node.SetHooks(Hooks{})
	eventually(t, snapshot, "the snapshot is ready", func() bool { return ready(snapshot) && snapshot.Status.Error == nil })
}

// A snapshot that was cut in one namespace can be had in another by a content that names its handle.
func TestSnapshotOfAnExistingContent(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	write(t, filepath.Join(bound(t, newClaim(t, namespace, "origin", "plain")), "file"), "content")
	snapshot := newSnapshot(t, namespace, "cut", "origin")
	eventually(t, snapshot, "the snapshot is ready", func() bool { return ready(snapshot) })
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: *snapshot.Status.BoundVolumeSnapshotContentName},
	}
	get(t, content)
	create(t, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "moved-" + other},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: other, Name: "moved"},
			DeletionPolicy:    snapshotv1.VolumeSnapshotContentRetain, Driver: Driver,
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: content.Status.SnapshotHandle},
		},
	})
	create(t, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "moved"},
		Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{
			VolumeSnapshotContentName: ptr.To("moved-" + other),
		}},
	})
	restored := newClaim(t, other, "restored", "plain", from("VolumeSnapshot", "moved"))
	if got := read(t, filepath.Join(bound(t, restored), "file"), 7); got != "content" {
		t.Fatalf("the restored volume has %q", got)
	}
}
