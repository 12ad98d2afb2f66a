// SPDX-License-Identifier: Apache-2.0

// Command controlplane starts a real control plane on loopback addresses, with a stand-in for a node, and keeps
// it until it is interrupted. scripts/control-plane builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"volferry.io/controller/test/controlplane"
	"volferry.io/controller/test/nodeless"
)

// class is the name of the default StorageClass and of the default VolumeSnapshotClass.
const class = "nodeless"

type options struct {
	kubeconfig, controllerKubeconfig string
	definitions, manifests           string
	volferry                         string
	nodeless, users                  bool
}

func main() {
	var o options
	// Not the default set, in which a library has a flag of the same name.
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file to write an administrator's credentials to; default: in the plane's folder")
	flags.StringVar(&o.controllerKubeconfig, "controller-kubeconfig", "", "file to write the credentials of the controller's service account to, which --apply must have made")
	flags.StringVar(&o.definitions, "crds", "", "files or folders with resource definitions to install, separated by commas")
	flags.StringVar(&o.manifests, "apply", "", "files or folders with objects to apply afterwards, separated by commas")
	flags.BoolVar(&o.nodeless, "node", true, "also stand for a node: volumes, snapshots, Services, and pods of movers")
	flags.BoolVar(&o.users, "users", false, "run movers as the user of their pods and give volumes to fsGroup; needs root")
	flags.StringVar(&o.volferry, "volferry", os.Getenv("VOLFERRY"), "the program that movers run")
	_ = flags.Parse(os.Args[1:])
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.Level(zapcore.ErrorLevel)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// run starts everything, says where it is in lines NAME=VALUE with `READY=yes` as the last, and waits for the end.
func run(ctx context.Context, o options) (err error) {
	// Without the cancellation: what runs is stopped in order, below.
	base := context.WithoutCancel(ctx)
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.InstallSnapshotCRDs(); err != nil {
		return err
	}
	if paths := split(o.definitions); len(paths) > 0 {
		if err := plane.InstallCRDs(paths...); err != nil {
			return err
		}
	}
	if err := makeNamespace(base, plane); err != nil {
		return err
	}
	if err := plane.Apply(base, split(o.manifests)...); err != nil {
		return err
	}
	if o.nodeless {
		node, err := startNode(base, plane, nodeless.Options{Volferry: o.volferry, Users: o.users})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Stop()) }()
		fmt.Printf("VOLUMES=%s\n", node.Store.Root())
	}
	if err := writeCredentials(base, plane, o); err != nil {
		return err
	}
	fmt.Println("READY=yes")
	<-ctx.Done()
	return nil
}

// makeNamespace makes the controller's namespace, which the manifests in deploy/rbac expect.
func makeNamespace(ctx context.Context, plane *controlplane.Plane) error {
	c, err := plane.Client()
	if err != nil {
		return err
	}
	return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controlplane.ControllerNamespace}})
}

func startNode(ctx context.Context, plane *controlplane.Plane, options nodeless.Options) (*nodeless.Node, error) {
	node, err := nodeless.Start(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	storage, snapshots := nodeless.StorageClass(class), nodeless.SnapshotClass(class)
	storage.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	snapshots.Annotations = map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}
	c, err := plane.Client()
	if err != nil {
		return nil, errors.Join(err, node.Stop())
	}
	for _, object := range []client.Object{storage, snapshots} {
		if err := c.Create(ctx, object); err != nil {
			return nil, errors.Join(err, node.Stop())
		}
	}
	return node, nil
}

func writeCredentials(ctx context.Context, plane *controlplane.Plane, o options) error {
	if o.kubeconfig == "" {
		o.kubeconfig = filepath.Join(plane.Root, "admin.kubeconfig")
	}
	write := func(name, path string, config *rest.Config) error {
		fmt.Printf("%s=%s\n", name, path)
		return controlplane.KubeConfig(config, path)
	}
	if err := write("KUBECONFIG", o.kubeconfig, plane.Admin()); err != nil {
		return err
	}
	if o.controllerKubeconfig == "" {
		return nil
	}
	config, err := plane.Token(ctx, controlplane.ControllerNamespace, controlplane.ControllerServiceAccount)
	if err != nil {
		return err
	}
	return write("CONTROLLER_KUBECONFIG", o.controllerKubeconfig, config)
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
