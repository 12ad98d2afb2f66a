// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/moverresult"
	"volferry.io/controller/internal/params"
)

// snapshotPatience is how long a snapshot may report an error before the sync is given up: drivers report passing ones.
const snapshotPatience = 5 * time.Minute

// What is said of snapshots at both ends.
const (
	noSnapshotAPI   = "this cluster has no VolumeSnapshot API; install the snapshot controller, or set copyMethod to Clone or Direct"
	nobodySnapshots = "nobody works on it: is the snapshot controller running?"
)

// driverError is a storage driver's own text, fit to be shown.
func driverError(failure *snapshotv1.VolumeSnapshotError) string {
	return moverresult.OneLine(params.Scrub(ptr.Deref(failure.Message, "the driver gives no reason")), 512)
}

// child of this Source, in its own namespace.
func (r *sourceRun) child() build.Child {
	return build.Child{Kind: "Source", Owner: r.source, Namespace: r.source.Namespace, Name: r.childSet, Set: r.childSet}
}

// moverKey is where the mover of the active sync is.
func (r *sourceRun) moverKey() client.ObjectKey {
	if active := r.source.Status.ActiveSync; active != nil && active.FinalSyncID != "" {
		return r.finalObject()
	}
	return client.ObjectKey{Namespace: r.source.Namespace, Name: r.childSet}
}

// copy keeps a point in time of the volume, for a sync whose tries all read the same.
func (r *sourceRun) copy(ctx context.Context) error {
	switch r.params.CopyMethod {
	case params.CopySnapshot:
		snapshot, err := r.snapshot(ctx)
		if err != nil {
			return err
		}
		return r.copyClaim(ctx, func(in *build.ClaimInput) {
			in.FromSnapshot = snapshot.Name
			// A volume that was grown since its snapshot, or a driver that rounds: the larger size holds both.
			if restore := snapshot.Status.RestoreSize; restore != nil && r.params.Capacity == nil && restore.Cmp(in.Size) > 0 {
				in.Size = *restore
			}
		})
	case params.CopyClone:
		return r.copyClaim(ctx, func(in *build.ClaimInput) { in.FromClaim = r.claim.Name })
	}
	return nil
}

// attemptAnnotation ties a copy to its sync: that of an earlier one is never read.
func (r *sourceRun) attemptAnnotation() map[string]string {
	active := r.source.Status.ActiveSync
	return map[string]string{build.AnnotationAttempt: fmt.Sprintf("%s@%d", active.AttemptID, active.Start.UnixMicro())}
}

// snapshot makes the snapshot and waits until it can be read.
func (r *sourceRun) snapshot(ctx context.Context) (*snapshotv1.VolumeSnapshot, error) {
	wanted := build.Snapshot(build.SnapshotInput{
		Child: r.child(), Annotations: r.attemptAnnotation(), ClassName: r.params.VolumeSnapshotClassName, ClaimName: r.claim.Name,
	})
	found := &snapshotv1.VolumeSnapshot{}
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case meta.IsNoMatchError(err):
		return nil, r.missing(v1alpha1.ReasonSnapshotClassNotFound, noSnapshotAPI)
	case apierrors.IsNotFound(err):
		if err := r.checkSnapshotClass(ctx); err != nil {
			return nil, err
		}
		if err := apply(ctx, r.Client, wanted); err != nil {
			return nil, err
		}
		return nil, lookAgain("the snapshot", snapshotPoll)
	case err != nil:
		return nil, err
	}
	if found.Annotations[build.AnnotationAttempt] != wanted.Annotations[build.AnnotationAttempt] || !found.DeletionTimestamp.IsZero() {
		if err := r.awaitGone(ctx, r.source, found, client.ObjectKeyFromObject(found)); err != nil {
			return nil, err
		}
		return nil, lookAgain("the old snapshot's successor", time.Millisecond)
	}
	return found, r.snapshotReady(ctx, found)
}

func (r *sourceRun) checkSnapshotClass(ctx context.Context) error {
	name := r.params.VolumeSnapshotClassName
	if name == "" {
		return nil
	}
	err := r.APIReader.Get(ctx, client.ObjectKey{Name: name}, &snapshotv1.VolumeSnapshotClass{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return r.missing(v1alpha1.ReasonSnapshotClassNotFound, fmt.Sprintf("VolumeSnapshotClass %s does not exist", name))
	}
	return err
}

func (r *sourceRun) snapshotReady(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	if snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false) {
		return nil
	}
	why := nobodySnapshots
	if snapshot.Status != nil {
		if snapshot.Status.Error == nil {
			return lookAgain("the snapshot to become ready", snapshotPoll)
		}
		why = driverError(snapshot.Status.Error)
		r.synchronizing("the snapshot reports an error: " + why)
	}
	if r.now.Sub(snapshot.CreationTimestamp.Time) < snapshotPatience {
		return lookAgain("the snapshot to recover", snapshotPoll)
	}
	if err := r.fail(ctx, failure{reason: v1alpha1.ReasonSnapshotFailed, exitCode: 1, text: "snapshot: " + why}); err != nil {
		return err
	}
	return lookAgain("cleaning up", time.Millisecond)
}

// copyClaim makes the claim that the mover mounts.
func (r *sourceRun) copyClaim(ctx context.Context, from func(*build.ClaimInput)) error {
	in := build.ClaimInput{
		Child:            r.child(),
		Annotations:      r.attemptAnnotation(),
		StorageClassName: r.params.StorageClassName,
		AccessModes:      r.params.AccessModes,
		VolumeMode:       r.volumeMode(),
		Size:             r.copySize(),
	}
	if in.StorageClassName == nil {
		in.StorageClassName = r.claim.Spec.StorageClassName
	}
	if len(in.AccessModes) == 0 {
		in.AccessModes = r.claim.Spec.AccessModes
	}
	from(&in)
	if err := r.checkStorageClass(ctx, in.StorageClassName); err != nil {
		return err
	}
	wanted := build.Claim(in)
	found := &corev1.PersistentVolumeClaim{}
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		return apply(ctx, r.Client, wanted)
	}
	if err != nil {
		return err
	}
	if found.Annotations[build.AnnotationAttempt] != wanted.Annotations[build.AnnotationAttempt] || !found.DeletionTimestamp.IsZero() {
		if err := r.awaitGone(ctx, r.source, found, client.ObjectKeyFromObject(found)); err != nil {
			return err
		}
		return apply(ctx, r.Client, wanted)
	}
	return nil
}

// copyThere tells whether the claim that the mover mounts exists. The method may have been edited since the copy was made,
// or somebody may have deleted it: then the sync begins anew.
func (r *sourceRun) copyThere(ctx context.Context) (bool, error) {
	if r.source.Status.ActiveSync.FinalSyncID != "" {
		// The fenced volume is read in place. Without its claim the final sync waits and does not begin anew.
		return true, nil
	}
	if r.params.CopyMethod == params.CopyDirect {
		return true, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: r.childSet}, claim)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	r.copied = claim
	return claim.DeletionTimestamp.IsZero(), nil
}

// copySize is at least the volume's size: a claim may have asked for less than it got.
func (r *sourceRun) copySize() (size quantity) {
	if r.params.Capacity != nil {
		return *r.params.Capacity
	}
	size = r.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if actual, there := r.claim.Status.Capacity[corev1.ResourceStorage]; there && actual.Cmp(size) > 0 {
		size = actual
	}
	return size
}

func (r *sourceRun) checkStorageClass(ctx context.Context, name *string) error {
	if ptr.Deref(name, "") == "" {
		return nil
	}
	err := r.Client.Get(ctx, client.ObjectKey{Name: *name}, &storagev1.StorageClass{})
	if apierrors.IsNotFound(err) {
		return r.missing(v1alpha1.ReasonStorageClassNotFound, fmt.Sprintf("StorageClass %s does not exist", *name))
	}
	return err
}

// missing names something that has to appear, and looks for it now and then.
func (r *sourceRun) missing(reason, message string) error {
	// What is missing may take long to come: no place is held meanwhile.
	r.Limiter.Release(client.ObjectKeyFromObject(r.source))
	if conditions.ReasonOf(r.persisted.Conditions, v1alpha1.ConditionDependenciesReady) != reason {
		r.note(r.source, corev1.EventTypeWarning, "DependencyMissing", "CheckDependencies", "%s", message)
	}
	r.set.False(v1alpha1.ConditionDependenciesReady, reason, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
	return lookAgain(message, dependencyPoll)
}

func (r *sourceRun) volumeMode() corev1.PersistentVolumeMode {
	return corev1.PersistentVolumeMode(r.source.Status.SourceVolume.VolumeMode)
}

// removeChildren deletes the mover and the copies, in the order in which they use each other.
func (r *sourceRun) removeChildren(ctx context.Context) error {
	if err := r.awaitGone(ctx, r.source, &batchv1.Job{}, r.moverKey()); err != nil {
		return err
	}
	if active := r.source.Status.ActiveSync; active != nil && active.FinalSyncID != "" {
		return nil // it made no copy
	}
	key := client.ObjectKey{Namespace: r.source.Namespace, Name: r.childSet}
	if err := r.awaitGone(ctx, r.source, &corev1.PersistentVolumeClaim{}, key); err != nil {
		return err
	}
	err := r.awaitGone(ctx, r.source, &snapshotv1.VolumeSnapshot{}, key)
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
