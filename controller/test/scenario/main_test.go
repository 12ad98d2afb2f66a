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
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
	lateClass     = "late"  // binds with the first pod
	snapshotClass = "standard"
)

// site is a control plane with a node.
type site struct {
	plane *controlplane.Plane
	node  *nodeless.Node
	admin client.Client
}

// cluster is shared by all tests; each has a namespace of its own.
var cluster *site

// otherCluster is the second site, for what happens between two; it is started by the first test that asks for it.
var otherCluster = sync.OnceValues(func() (*site, error) { return startSite(context.Background()) })

// startedOther tells whether there is a second site to stop.
var startedOther atomic.Pointer[site]

func secondSite(t *testing.T) *site {
	t.Helper()
	other, err := otherCluster()
	if err != nil {
		t.Fatal(err)
	}
	startedOther.Store(other)
	return other
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
	if cluster, err = startSite(context.Background()); err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, cluster.stop())
		if other := startedOther.Load(); other != nil {
			err = errors.Join(err, other.stop())
		}
	}()
	return m.Run(), nil
}

func startSite(ctx context.Context) (*site, error) {
	s := &site{}
	var err error
	if s.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	if err := s.install(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	// Movers run as their pods' users, with the rights that fsGroup gives them and no others.
	if s.node, err = nodeless.Start(ctx, s.plane, nodeless.Options{Users: true}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.setHooks(0)
	return s, nil
}

func (s *site) stop() error {
	var err error
	if s.node != nil {
		err = s.node.Stop()
	}
	return errors.Join(err, s.plane.Stop())
}

// install what an administrator installs, and the classes of the test s.
func (s *site) install(ctx context.Context) error {
	root, err := controlplane.Repository()
	if err != nil {
		return err
	}
	if err := s.plane.InstallCRDs(filepath.Join(root, "deploy/crd/generated")); err != nil {
		return err
	}
	if err := s.plane.InstallSnapshotCRDs(); err != nil {
		return err
	}
	scheme, err := app.Scheme()
	if err != nil {
		return err
	}
	if s.admin, err = client.New(s.plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vault}}); err != nil {
		return err
	}
	if err := s.plane.Apply(ctx, filepath.Join(root, "deploy/rbac"), filepath.Join(root, "deploy/admission")); err != nil {
		return err
	}
	rigid := nodeless.StorageClass(rigidClass)
	rigid.AllowVolumeExpansion = ptr.To(false)
	standard := nodeless.StorageClass(class)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	snapshots := nodeless.SnapshotClass(snapshotClass)
	snapshots.Annotations = map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}
	late := nodeless.StorageClass(lateClass)
	late.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	for _, object := range []client.Object{standard, rigid, late, snapshots} {
		if err := s.admin.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
