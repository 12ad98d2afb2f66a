// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"volferry.io/controller/test/controlplane"
)

var (
	node *Node
	c    client.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: starts a control plane, which is left out with -short")
		os.Exit(0)
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true)))
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx := context.Background()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.InstallSnapshotCRDs(); err != nil {
		return 1, err
	}
	if node, err = Start(ctx, plane, Options{Names: []string{"first", "second"}, Users: true}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	if c, err = plane.Client(); err != nil {
		return 1, err
	}
	late := StorageClass("late")
	late.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	for _, object := range []client.Object{StorageClass("plain"), late, SnapshotClass("snapshots")} {
		if err := c.Create(ctx, object); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	return namespace.Name
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// get refreshes the object; a failure is the test's.
func get(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the object, refreshed, is as wanted.
func eventually(t *testing.T, object client.Object, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			return c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && done(), nil
		})
	if err != nil {
		t.Fatalf("%s: %v; last seen: %+v", what, err, object)
	}
}

// newClaim makes a claim of 16 MiB, changed by the functions.
func newClaim(t *testing.T, namespace, name, class string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
			},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	create(t, claim)
	return claim
}

func block(claim *corev1.PersistentVolumeClaim) {
	claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
}

func from(kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: name}
		if kind == "VolumeSnapshot" {
			claim.Spec.DataSource.APIGroup = ptr.To("snapshot.storage.k8s.io")
		}
	}
}

func bound(t *testing.T, claim *corev1.PersistentVolumeClaim) string {
	t.Helper()
	eventually(t, claim, "the claim is bound", func() bool { return claim.Status.Phase == corev1.ClaimBound })
	path, err := node.ClaimPath(t.Context(), claim.Namespace, claim.Name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
