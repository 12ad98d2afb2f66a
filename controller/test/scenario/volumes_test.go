// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// A17 is shown beside each way to keep a point in time, on both ends: what arrives is complete, and while it does the
// user's namespace shows no claim and no snapshot of the replica.
func TestA17ReplicaIsHidden(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Snapshot", "Clone", "Direct"} {
		for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
			t.Run(method+string(mode), func(t *testing.T) {
				t.Parallel()
				syncTwice(t, method, mode)
			})
		}
	}
}

// loopDevicesWork is asked once for all tests that run side by side.
var loopDevicesWork = sync.OnceValue(func() error { return cluster.node.Store.LoopDevicesWork() })

func syncTwice(t *testing.T, method string, mode corev1.PersistentVolumeMode) {
	if mode == corev1.PersistentVolumeBlock {
		if err := loopDevicesWork(); err != nil {
			t.Skip("no loop devices here: ", err)
		}
	}
	w := newWorld(t)
	data := w.claim("data", "16Mi", mode)
	file := filepath.Join(data, "dir", "file")
	if mode == corev1.PersistentVolumeBlock {
		file = data
	}
	w.fill(file, 0, 4<<20)
	w.pair("p", "data", map[string]string{"copyMethod": method}, map[string]string{
		"copyMethod": method, "capacity": "16Mi", "volumeMode": string(mode), "keepImages": "2",
	})
	var sent []int64
	for seq := range int64(3) {
		w.demand("p", "sync-"+strconv.FormatInt(seq, 10))
		w.eventually(30*time.Second, "the image", func() bool {
			image := w.destination("p").Status.LatestImage
			return image != nil && image.Seq == seq+1
		})
		if !same(data, w.staging("p")) {
			t.Fatalf("after sync %d the staging volume differs from the source", seq+1)
		}
		w.nothingShown("data")
		bytes, err := strconv.ParseInt(w.source("p").Status.MethodStatus["bytesSent"], 10, 64)
		w.must(err)
		sent = append(sent, bytes)
		w.fill(file, (seq+1)<<20, 4096)
	}
	if sent[0] < 4<<20 || sent[1] > 200_000 || sent[2] > 200_000 {
		t.Errorf("sent %v bytes; want 4 MiB first, and then about what had changed", sent)
	}
	images := w.destination("p").Status.Images
	if want := map[string]int{"Snapshot": 2, "Clone": 2, "Direct": 1}[method]; len(images) != want {
		t.Errorf("%d images are listed, want %d: %+v", len(images), want, images)
	}
	w.eventually(20*time.Second, "the third image to be pruned", func() bool {
		snapshots, claims := w.imagesInVault("p")
		return snapshots+claims == len(images) && method != "Direct" || method == "Direct" && snapshots+claims == 0
	})
}

// fill writes random bytes into a file or device at an offset.
func (w *world) fill(path string, offset, size int64) {
	w.Helper()
	source := filepath.Join(w.TempDir(), "random")
	w.write(source, int(size))
	content, err := os.ReadFile(source)
	w.must(err)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	w.must(err)
	_, err = file.WriteAt(content, offset)
	w.must(err)
	w.must(file.Sync())
	w.must(file.Close())
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		own(path)
	}
}

// nothingShown checks that the user's namespace has the user's claim alone.
func (w *world) nothingShown(own string) {
	w.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	w.must(w.client.List(w.ctx, claims, client.InNamespace(w.namespace)))
	for _, claim := range claims.Items {
		if claim.Name != own {
			w.Errorf("claim %s is shown to the user", claim.Name)
		}
		if len(claim.Finalizers) != 1 || len(claim.OwnerReferences) != 0 {
			w.Errorf("claim %s has finalizers %v and owners %v", claim.Name, claim.Finalizers, claim.OwnerReferences)
		}
	}
	snapshots := &snapshotv1.VolumeSnapshotList{}
	w.must(w.client.List(w.ctx, snapshots, client.InNamespace(w.namespace)))
	for _, snapshot := range snapshots.Items {
		w.Errorf("snapshot %s is shown to the user", snapshot.Name)
	}
}

// imagesInVault counts the objects that hold images of a Destination.
func (w *world) imagesInVault(name string) (snapshots, claims int) {
	w.Helper()
	child := names.Destination(w.namespace, name)
	mine := client.MatchingLabels{v1alpha1.LabelChild: child}
	snapshotList, claimList := &snapshotv1.VolumeSnapshotList{}, &corev1.PersistentVolumeClaimList{}
	w.must(w.client.List(w.ctx, snapshotList, client.InNamespace(vault), mine))
	w.must(w.client.List(w.ctx, claimList, client.InNamespace(vault), mine))
	return len(snapshotList.Items), len(claimList.Items) - 1 // but for the staging volume
}

// An image is used only once it is ready: the listener for the next transfer waits for it, and so does the mover of a
// Source whose snapshot takes its time.
func TestImagesAreUsedOnceReady(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "file"), 1000)
	w.pair("p", "data", nil, map[string]string{"capacity": "8Mi"})
	cluster.setHooks(4 * time.Second)
	defer cluster.setHooks(0)
	w.ask("p", "1")
	w.eventually(20*time.Second, "the Source's snapshot", func() bool {
		return w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: names.Source(w.namespace, "p")}, &snapshotv1.VolumeSnapshot{}) == nil
	})
	w.never(2*time.Second, "a mover before the snapshot is ready", func() bool { return len(w.sourceRuns("p")) > 0 })
	w.eventually(40*time.Second, "the transfer", func() bool { return w.destination("p").Status.LastReceived != nil })
	if w.destination("p").Status.LatestImage != nil {
		t.Error("an image is shown before its snapshot is ready")
	}
	w.never(2*time.Second, "a listener while the image is being made", func() bool { return len(w.destinationRuns("p")) > 1 })
	w.served("p", "1")
	w.eventually(20*time.Second, "the image and the next listener", func() bool {
		return w.destination("p").Status.LatestImage != nil && len(w.destinationRuns("p")) == 2
	})
}

// The staging volume follows a source that has grown, where its class can.
func TestStagingGrowsWithTheSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "file"), 1000)
	w.pair("p", "data", map[string]string{"copyMethod": "Direct"}, map[string]string{"copyMethod": "Direct", "capacity": "8Mi"})
	w.demand("p", "1")
	claim := edit(w, "data", func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("24Mi")
	})
	w.eventually(20*time.Second, "the source to grow", func() bool {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(claim), claim))
		return claim.Status.Capacity.Storage().Value() >= 24<<20
	})
	w.demand("p", "2")
	w.eventually(30*time.Second, "the staging volume to grow", func() bool {
		capacity := w.destination("p").Status.Staging.Capacity
		return capacity != nil && capacity.Value() >= 24<<20
	})
	// A class that cannot grow is named, together with the parameter, when the user asks for more.
	w.addDestination("rigid", map[string]string{"storageClassName": rigidClass, "capacity": "8Mi"})
	w.eventually(20*time.Second, "the rigid staging volume", func() bool {
		staging := w.destination("rigid").Status.Staging
		return staging != nil && staging.Capacity != nil
	})
	edit(w, "rigid", func(d *v1alpha1.Destination) { d.Spec.Parameters["capacity"] = "24Mi" })
	w.eventually(20*time.Second, "InvalidParameter", func() bool {
		return reason(w.destination("rigid").Status.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonInvalidParameter
	})
}

// A volume is retained while its Source lives, and its policy comes back afterwards.
func TestReclaimPolicyIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	pv := &corev1.PersistentVolume{}
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "data"}, claim))
	read := func() { w.must(w.client.Get(w.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)) }
	w.eventually(10*time.Second, "Retain", func() bool {
		read()
		return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	})
	w.must(w.client.Delete(w.ctx, w.source("p")))
	w.eventually(20*time.Second, "Delete again", func() bool {
		read()
		return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && len(pv.Annotations["volferry.io/original-reclaim-policy"]) == 0
	})
}

// Deleting a Destination in mid-life leaves nothing in the vault; with deletionPolicy Retain only the staging volume.
func TestDestinationCleansUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.demand("p", "1")
	w.addDestination("kept", map[string]string{"copyMethod": "Direct", "capacity": "8Mi"})
	edit(w, "kept", func(d *v1alpha1.Destination) { d.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
	w.staging("kept")
	w.deleteAll()
	for _, name := range []string{"p", "kept"} {
		key := client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, name)}
		for _, object := range []client.Object{&batchv1.Job{}, &corev1.Service{}, &corev1.Secret{}} {
			if err := w.client.Get(w.ctx, key, object); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%T of %s: %v", object, name, err)
			}
		}
		err := w.client.Get(w.ctx, key, &corev1.PersistentVolumeClaim{})
		if kept := err == nil; kept != (name == "kept") {
			t.Errorf("staging claim of %s: %v", name, err)
		}
	}
}
