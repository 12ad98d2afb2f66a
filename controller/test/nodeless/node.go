// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"volferry.io/controller/test/controlplane"
)

// Driver is the name of the volume driver: provisioner of StorageClasses, driver of VolumeSnapshotClasses and of
// the volumes made.
const Driver = "nodeless.volferry.io"

// retryDelay is how soon something that waits for another object is looked at again.
const retryDelay = 100 * time.Millisecond

// Options say how a node is started.
type Options struct {
	// Volferry is the program that a container with the command `volferry`, or with none, runs. Empty:
	// that of the environment variable VOLFERRY.
	Volferry string
	// Users lets programs run as the user and groups of their pods and gives volumes to fsGroup, as a kubelet does; a
	// pod without a user gets ImageUser. Only root can do that, and for others it changes nothing.
	Users bool
	// Names of the nodes; empty: one node `nodeless`.
	Names []string
	// Pods selects the pods to run by their labels. Nil: those with app.kubernetes.io/managed-by=volferry.
	Pods labels.Selector
	// Hooks change what happens, see there; more can be set later by SetHooks.
	Hooks Hooks
}

// Node is the running stand-in.
type Node struct {
	// Store holds the volumes.
	Store *Store

	plane    *controlplane.Plane
	client   client.Client // never reads from a cache
	volferry string
	users    bool
	names    []string
	pods     labels.Selector
	hooks    hooks
	journal  journal
	proxy    *proxy
	runner   *podRunner
	root     string

	cancel context.CancelFunc
	ended  chan error
}

// Start makes the Node objects and the driver's, and starts everything. The snapshot definitions must be
// installed. The caller calls Stop before it stops the plane.
func Start(ctx context.Context, plane *controlplane.Plane, options Options) (*Node, error) {
	node := &Node{plane: plane, volferry: options.Volferry, names: options.Names, pods: options.Pods}
	if node.volferry == "" {
		node.volferry = os.Getenv("VOLFERRY")
	}
	if len(node.names) == 0 {
		node.names = []string{"nodeless"}
	}
	if node.pods == nil {
		node.pods = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "volferry"})
	}
	node.hooks.set(options.Hooks)
	var err error
	if node.root, err = os.MkdirTemp(plane.Root, "node-"); err != nil {
		return nil, err
	}
	node.users = options.Users && os.Geteuid() == 0
	if err := node.openToUsers(plane.Root); err != nil {
		return nil, err
	}
	volumes := filepath.Join(node.root, "volumes")
	if err := os.Mkdir(volumes, 0o755); err != nil {
		return nil, err
	}
	node.Store = NewStore(volumes)
	if node.client, err = plane.Client(); err != nil {
		return nil, err
	}
	if err := node.register(ctx); err != nil {
		return nil, err
	}
	return node, node.startControllers(ctx)
}

func (n *Node) startControllers(ctx context.Context) error {
	mgr, err := manager.New(n.plane.Admin(), manager.Options{
		Scheme:  controlplane.Scheme(),
		Metrics: server.Options{BindAddress: "0"},
		Logger:  ctrl.Log.WithName("nodeless"),
	})
	if err != nil {
		return err
	}
	n.proxy = newProxy(n.client)
	n.runner = newPodRunner(n)
	for _, add := range []func(manager.Manager) error{
		(&provisioner{n}).setUp, (&deleter{n}).setUp, (&resizer{n}).setUp, (&snapshotter{n}).setUp,
		(&scheduler{n}).setUp, n.runner.setUp, n.proxy.setUp,
	} {
		if err := add(mgr); err != nil {
			return err
		}
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.ended = make(chan error, 1)
	go func() { n.ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.Join(errors.New("the watches did not start"), n.Stop())
	}
	return nil
}

// Stop ends all programs that run for pods, all connections and watches, and gives loop devices back.
func (n *Node) Stop() error {
	if n.cancel == nil {
		return nil
	}
	n.cancel()
	n.cancel = nil
	err := <-n.ended
	n.runner.killAll()
	n.proxy.closeAll()
	return errors.Join(err, n.Store.Close())
}

// register makes the objects by which a node and a driver are known to the control plane.
func (n *Node) register(ctx context.Context) error {
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Driver},
		// Nobody here confirms an attachment, so none may be waited for.
		Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)},
	}
	if err := n.client.Create(ctx, driver); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, name := range n.names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		}}
		if err := n.client.Create(ctx, node); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := n.client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		before := node.DeepCopy()
		now := metav1.Now()
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Nodeless",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}}
		if err := n.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// StorageClass builds a class of our driver, which can grow and binds at once. The caller changes and creates it.
func StorageClass(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: name},
		Provisioner:          Driver,
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: ptr.To(true),
	}
}

// ClaimPath gives the directory or device of a bound claim, for a test to write to and to compare.
func (n *Node) ClaimPath(ctx context.Context, namespace, name string) (string, error) {
	handle, err := n.claimHandle(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return n.Store.Path(handle)
}

// VolumePath gives the directory or device of a volume object.
func (n *Node) VolumePath(ctx context.Context, name string) (string, error) {
	volume := &corev1.PersistentVolume{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: name}, volume); err != nil {
		return "", err
	}
	if !ours(volume) {
		return "", fmt.Errorf("volume %s is of another driver", name)
	}
	return n.Store.Path(volume.Spec.CSI.VolumeHandle)
}

// errNotBound says that a claim has no volume yet.
var errNotBound = errors.New("the claim is not bound")

// claimHandle gives the handle of the volume that a claim is bound to.
func (n *Node) claimHandle(ctx context.Context, namespace, name string) (string, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := n.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", fmt.Errorf("%w: %s/%s is %s", errNotBound, namespace, name, claim.Status.Phase)
	}
	volume := &corev1.PersistentVolume{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return "", err
	}
	if !ours(volume) {
		return "", fmt.Errorf("volume %s is of another driver", volume.Name)
	}
	if reference := volume.Spec.ClaimRef; reference == nil || reference.UID != claim.UID {
		return "", fmt.Errorf("%w: volume %s belongs to another claim", errNotBound, volume.Name)
	}
	return volume.Spec.CSI.VolumeHandle, nil
}

func ours(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == Driver
}
