// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	snapshotFinalizer      = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	defaultClassAnnotation = "snapshot.storage.kubernetes.io/is-default-class"
)

// snapshotter does what the snapshot controller and the driver's sidecar do together.
type snapshotter struct{ *Node }

// SnapshotClass builds a snapshot class of our driver. The caller changes and creates it.
func SnapshotClass(name string) *snapshotv1.VolumeSnapshotClass {
	return &snapshotv1.VolumeSnapshotClass{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		Driver:         Driver,
		DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
}

func (s *snapshotter) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("snapshotter").WithOptions(anyName).
		For(&snapshotv1.VolumeSnapshot{}).Complete(s)
}

// Reconcile takes one snapshot a step further: content cut and bound, later ready; or deleted.
func (s *snapshotter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	snapshot := &snapshotv1.VolumeSnapshot{}
	if err := s.client.Get(ctx, request.NamespacedName, snapshot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if snapshot.DeletionTimestamp != nil {
		return ctrl.Result{}, s.remove(ctx, snapshot)
	}
	if snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false) {
		return ctrl.Result{}, nil
	}
	content, err := s.content(ctx, snapshot)
	if err != nil {
		return ctrl.Result{RequeueAfter: retryDelay}, s.report(ctx, snapshot, err)
	}
	if content == nil {
		return ctrl.Result{}, nil
	}
	return s.bind(ctx, snapshot, content)
}

// bind reports the content in the snapshot's status; ready only when the delay since the cut has passed.
func (s *snapshotter) bind(
	ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent,
) (ctrl.Result, error) {
	cut := time.Unix(0, ptr.Deref(content.Status.CreationTime, 0))
	wait := time.Until(cut.Add(s.hooks.get().SnapshotDelay))
	ready := wait <= 0
	before := snapshot.DeepCopy()
	snapshot.Status = &snapshotv1.VolumeSnapshotStatus{
		BoundVolumeSnapshotContentName: &content.Name,
		CreationTime:                   ptr.To(metav1.NewTime(cut)),
		ReadyToUse:                     &ready,
	}
	if size := ptr.Deref(content.Status.RestoreSize, 0); ready && size > 0 {
		snapshot.Status.RestoreSize = resource.NewQuantity(size, resource.BinarySI)
	}
	if err := s.client.Status().Patch(ctx, snapshot, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ready {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// content gives the content of the snapshot with its status, cutting it if need be. Nil: the snapshot is of
// another driver.
func (s *snapshotter) content(
	ctx context.Context, snapshot *snapshotv1.VolumeSnapshot,
) (*snapshotv1.VolumeSnapshotContent, error) {
	if name := snapshot.Spec.Source.VolumeSnapshotContentName; name != nil {
		return s.existingContent(ctx, snapshot, *name)
	}
	class, err := s.class(ctx, snapshot)
	if err != nil || class.Driver != Driver {
		return nil, err
	}
	// The finalizer comes before the content, which otherwise could be left behind.
	if controllerutil.AddFinalizer(snapshot, snapshotFinalizer) {
		if err := s.client.Update(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	err = s.client.Get(ctx, client.ObjectKey{Name: contentName(snapshot)}, content)
	if err == nil && content.Status != nil {
		return content, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return s.cut(ctx, snapshot, class)
}

// existingContent serves a snapshot that names its content, which must point back at it.
func (s *snapshotter) existingContent(
	ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, name string,
) (*snapshotv1.VolumeSnapshotContent, error) {
	content := &snapshotv1.VolumeSnapshotContent{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, content); err != nil {
		return nil, err
	}
	if content.Spec.Driver != Driver {
		return nil, nil
	}
	reference := content.Spec.VolumeSnapshotRef
	if reference.Namespace != snapshot.Namespace || reference.Name != snapshot.Name ||
		reference.UID != "" && reference.UID != snapshot.UID {
		return nil, fmt.Errorf("content %s refers to another snapshot", name)
	}
	handle := ptr.Deref(content.Spec.Source.SnapshotHandle, "")
	if !s.Store.Exists(handle) {
		return nil, fmt.Errorf("content %s has the unknown handle %q", name, handle)
	}
	if controllerutil.AddFinalizer(snapshot, snapshotFinalizer) {
		if err := s.client.Update(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	if content.Status == nil {
		return content, s.setContentStatus(ctx, content, handle, 0)
	}
	return content, nil
}

// cut copies the volume and makes the content object.
func (s *snapshotter) cut(
	ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass,
) (*snapshotv1.VolumeSnapshotContent, error) {
	if hook := s.hooks.get().Snapshot; hook != nil {
		if err := hook(snapshot); err != nil {
			return nil, err
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	claimKey := client.ObjectKey{
		Namespace: snapshot.Namespace, Name: ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""),
	}
	if err := s.client.Get(ctx, claimKey, claim); err != nil {
		return nil, err
	}
	volume, err := s.claimHandle(ctx, claimKey.Namespace, claimKey.Name)
	if err != nil {
		return nil, err
	}
	handle := "snapshot-" + string(snapshot.UID)
	if err := s.Store.Copy(volume, handle, 0); err != nil {
		return nil, err
	}
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: contentName(snapshot)},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot",
				Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID,
			},
			DeletionPolicy:          class.DeletionPolicy,
			Driver:                  Driver,
			VolumeSnapshotClassName: &class.Name,
			Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &volume},
			SourceVolumeMode:        claim.Spec.VolumeMode,
		},
	}
	err = s.client.Create(ctx, content)
	if apierrors.IsAlreadyExists(err) {
		err = s.client.Get(ctx, client.ObjectKeyFromObject(content), content)
	}
	if err != nil {
		return nil, err
	}
	return content, s.setContentStatus(ctx, content, handle, claim.Status.Capacity.Storage().Value())
}

func (s *snapshotter) setContentStatus(
	ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string, size int64,
) error {
	before := content.DeepCopy()
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{
		SnapshotHandle: &handle, CreationTime: ptr.To(time.Now().UnixNano()), ReadyToUse: ptr.To(true),
	}
	if size > 0 {
		content.Status.RestoreSize = &size
	}
	return s.client.Status().Patch(ctx, content, client.MergeFrom(before))
}

// class finds the class that the snapshot names, or the default one of our driver.
func (s *snapshotter) class(
	ctx context.Context, snapshot *snapshotv1.VolumeSnapshot,
) (*snapshotv1.VolumeSnapshotClass, error) {
	if name := snapshot.Spec.VolumeSnapshotClassName; name != nil {
		class := &snapshotv1.VolumeSnapshotClass{}
		return class, s.client.Get(ctx, client.ObjectKey{Name: *name}, class)
	}
	classes := &snapshotv1.VolumeSnapshotClassList{}
	if err := s.client.List(ctx, classes); err != nil {
		return nil, err
	}
	for index := range classes.Items {
		class := &classes.Items[index]
		if class.Driver == Driver && class.Annotations[defaultClassAnnotation] == "true" {
			return class, nil
		}
	}
	return nil, fmt.Errorf("snapshot %s names no class and there is no default one", snapshot.Name)
}

// report puts a failure into the snapshot's status.
func (s *snapshotter) report(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, failure error) error {
	before := snapshot.DeepCopy()
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	text := failure.Error()
	if last := snapshot.Status.Error; last != nil && ptr.Deref(last.Message, "") == text {
		return nil
	}
	snapshot.Status.ReadyToUse = ptr.To(false)
	snapshot.Status.Error = &snapshotv1.VolumeSnapshotError{Message: &text, Time: ptr.To(metav1.Now())}
	return client.IgnoreNotFound(s.client.Status().Patch(ctx, snapshot, client.MergeFrom(before)))
}

// remove deletes the content and its data, if the policy says so, and lets the snapshot go.
func (s *snapshotter) remove(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	if !controllerutil.ContainsFinalizer(snapshot, snapshotFinalizer) {
		return nil
	}
	name := contentName(snapshot)
	if given := snapshot.Spec.Source.VolumeSnapshotContentName; given != nil {
		name = *given
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	err := s.client.Get(ctx, client.ObjectKey{Name: name}, content)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := s.client.Delete(ctx, content); client.IgnoreNotFound(err) != nil {
			return err
		}
		if content.Status != nil {
			if err := s.Store.Delete(ptr.Deref(content.Status.SnapshotHandle, "")); err != nil {
				return err
			}
		}
	}
	controllerutil.RemoveFinalizer(snapshot, snapshotFinalizer)
	return client.IgnoreNotFound(s.client.Update(ctx, snapshot))
}

func contentName(snapshot *snapshotv1.VolumeSnapshot) string {
	return "snapcontent-" + string(snapshot.UID)
}
