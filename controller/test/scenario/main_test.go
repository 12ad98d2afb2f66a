// SPDX-License-Identifier: Apache-2.0

// Package scenario runs the controller against a real control plane, with real movers that move real bytes. Each test
// names the scenario it shows; docs/scenarios.md lists them.
package scenario

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"volferry.io/controller/internal/app"
	"volferry.io/controller/test/controlplane"
	"volferry.io/controller/test/nodeless"
)

const vault = controlplane.ControllerNamespace

// Classes of the test cluster.
const (
	class         = "standard"
	rigidClass    = "rigid" // cannot grow
	snapshotClass = "standard"
)

// cluster is shared by all tests; each has a namespace of its own.
var cluster struct {
	plane *controlplane.Plane
	node  *nodeless.Node
	admin client.Client
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: the scenarios start a control plane, which is left out with -short")
		os.Exit(0)
	}
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the test cluster:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if file := os.Getenv("VOLFERRY_CONTROLLER_LOG"); file != "" {
		log, err := os.Create(file)
		if err != nil {
			return 0, err
		}
		ctrl.SetLogger(zap.New(zap.WriteTo(log), zap.UseDevMode(true)))
	} else {
		ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.Level(zapcore.DPanicLevel)))
	}
	ctx := context.Background()
	if cluster.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.plane.Stop()) }()
	if err := install(ctx); err != nil {
		return 0, err
	}
	// Movers run as their pods' users, with the rights that fsGroup gives them and no others.
	if cluster.node, err = nodeless.Start(ctx, cluster.plane, nodeless.Options{Users: true}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.node.Stop()) }()
	setHooks(0)
	return m.Run(), nil
}

// install what an administrator installs, and the classes of the test cluster.
func install(ctx context.Context) error {
	root, err := controlplane.Repository()
	if err != nil {
		return err
	}
	if err := cluster.plane.InstallCRDs(filepath.Join(root, "deploy/crd/generated")); err != nil {
		return err
	}
	if err := cluster.plane.InstallSnapshotCRDs(); err != nil {
		return err
	}
	scheme, err := app.Scheme()
	if err != nil {
		return err
	}
	if cluster.admin, err = client.New(cluster.plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := cluster.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vault}}); err != nil {
		return err
	}
	if err := cluster.plane.Apply(ctx, filepath.Join(root, "deploy/rbac"), filepath.Join(root, "deploy/admission")); err != nil {
		return err
	}
	rigid := nodeless.StorageClass(rigidClass)
	rigid.AllowVolumeExpansion = ptr.To(false)
	standard := nodeless.StorageClass(class)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	snapshots := nodeless.SnapshotClass(snapshotClass)
	snapshots.Annotations = map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}
	for _, object := range []client.Object{standard, rigid, snapshots} {
		if err := cluster.admin.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
