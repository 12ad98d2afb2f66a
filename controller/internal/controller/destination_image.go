// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/params"
)

// Kinds of images.
const (
	imageSnapshot = "VolumeSnapshot"
	imageClaim    = "PersistentVolumeClaim"
	imageStaging  = "Staging"
)

var imageKinds = map[params.CopyMethod]string{
	params.CopySnapshot: imageSnapshot, params.CopyClone: imageClaim, params.CopyDirect: imageStaging,
}

// planImage records the image that the transfer of a Job is to have. Nothing listens until it is ready, so it holds that
// transfer and no part of the next.
func (r *destinationRun) planImage(seq int64, finalSyncID, jobUID string) {
	image := v1alpha1.Image{
		Kind: imageKinds[r.params.CopyMethod],
		Name: names.Image(r.childSet, jobUID),
		Seq:  seq,
		Time: metav1.Time{Time: r.now},
	}
	if image.Kind == imageStaging {
		image.Name = r.childSet
	}
	r.destination.Status.PendingImage = &v1alpha1.PendingImage{Image: image, FinalSyncID: finalSyncID, JobUID: jobUID}
}

// finishImage makes the planned image and waits until it is ready.
func (r *destinationRun) finishImage(ctx context.Context) error {
	pending := r.destination.Status.PendingImage
	if pending == nil {
		return nil
	}
	if pending.Kind != imageKinds[r.params.CopyMethod] {
		// The user has chosen another way meanwhile, perhaps because this one does not work here.
		r.planImage(pending.Seq, pending.FinalSyncID, pending.JobUID)
		if err := r.persist(ctx); err != nil {
			return err
		}
		pending = r.destination.Status.PendingImage
	}
	ready, err := r.makeImage(ctx, pending)
	if err != nil {
		return err
	}
	if !ready {
		if r.set.Reason(v1alpha1.ConditionImageAvailable) != v1alpha1.ReasonSnapshotFailed {
			r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonCleaningUp, "an image of the transfer is being made")
		}
		return lookAgain("image "+pending.Name, snapshotPoll)
	}
	status := &r.destination.Status
	others := slices.DeleteFunc(slices.Clone(status.Images), func(i v1alpha1.Image) bool { return i.Name == pending.Name })
	status.Images = append([]v1alpha1.Image{pending.Image}, others...)
	status.LatestImage = ptr.To(pending.Image)
	status.PendingImage = nil
	r.report("latestImage", pending.Name)
	r.report("imageSeq", strconv.FormatInt(pending.Seq, 10))
	r.set.True(v1alpha1.ConditionImageAvailable, v1alpha1.ReasonAvailable, "image "+pending.Name+" holds a complete transfer")
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.note(r.destination, corev1.EventTypeNormal, "ImageCreated", "MakeImage", "%s %s holds transfer %d", pending.Kind, pending.Name, pending.Seq)
	return nil
}

func (r *destinationRun) makeImage(ctx context.Context, pending *v1alpha1.PendingImage) (ready bool, err error) {
	annotations := map[string]string{v1alpha1.AnnotationSequence: strconv.FormatInt(pending.Seq, 10)}
	switch pending.Kind {
	case imageSnapshot:
		return r.makeSnapshot(ctx, pending.Name, annotations)
	case imageClaim:
		return r.makeClone(ctx, pending.Name, annotations)
	}
	return true, nil
}

// makeSnapshot tells whether the snapshot is ready, making it first. A snapshot that fails is reported and waited for:
// the transfer is complete in the staging volume, and the next one would only put an image off further.
func (r *destinationRun) makeSnapshot(ctx context.Context, name string, annotations map[string]string) (bool, error) {
	found := &snapshotv1.VolumeSnapshot{}
	err := r.APIReader.Get(ctx, r.key(name), found)
	switch {
	case meta.IsNoMatchError(err):
		return false, r.missing(v1alpha1.ReasonSnapshotClassNotFound, noSnapshotAPI)
	case apierrors.IsNotFound(err):
		if err := r.checkSnapshotClass(ctx); err != nil {
			return false, err
		}
		return false, apply(ctx, r.Client, build.Snapshot(build.SnapshotInput{
			Child: r.child(name), Annotations: annotations, ClassName: r.params.VolumeSnapshotClassName, ClaimName: r.childSet,
		}))
	case err != nil:
		return false, err
	}
	if found.Status != nil && ptr.Deref(found.Status.ReadyToUse, false) {
		return true, nil
	}
	return false, r.snapshotPending(ctx, found)
}

// snapshotPending tells of a snapshot that fails. One that has had its time is deleted, to be made once more.
func (r *destinationRun) snapshotPending(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	age := r.now.Sub(snapshot.CreationTimestamp.Time)
	why := ""
	if snapshot.Status != nil && snapshot.Status.Error != nil {
		why = driverError(snapshot.Status.Error)
	} else if snapshot.Status == nil && age > snapshotPatience {
		why = nobodySnapshots
	}
	if why == "" {
		return nil
	}
	message := fmt.Sprintf("snapshot %s: %s", snapshot.Name, why)
	if conditions.ReasonOf(r.persisted.Conditions, v1alpha1.ConditionImageAvailable) != v1alpha1.ReasonSnapshotFailed {
		r.note(r.destination, corev1.EventTypeWarning, "TransferFailed", "MakeImage", "%s", message)
		metrics.Failure(r.labels(), v1alpha1.ReasonSnapshotFailed)
	}
	r.set.False(v1alpha1.ConditionImageAvailable, v1alpha1.ReasonSnapshotFailed, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
	if age > snapshotPatience {
		return r.drop(ctx, snapshot)
	}
	return nil
}

func (r *destinationRun) checkSnapshotClass(ctx context.Context) error {
	class := r.params.VolumeSnapshotClassName
	if class == "" {
		return nil
	}
	err := r.APIReader.Get(ctx, client.ObjectKey{Name: class}, &snapshotv1.VolumeSnapshotClass{})
	if apierrors.IsNotFound(err) {
		return r.missing(v1alpha1.ReasonSnapshotClassNotFound, fmt.Sprintf("VolumeSnapshotClass %s does not exist", class))
	}
	return err
}

// makeClone tells whether the clone is there, making it first.
func (r *destinationRun) makeClone(ctx context.Context, name string, annotations map[string]string) (bool, error) {
	found := &corev1.PersistentVolumeClaim{}
	err := r.APIReader.Get(ctx, r.key(name), found)
	if apierrors.IsNotFound(err) {
		return false, apply(ctx, r.Client, build.Claim(build.ClaimInput{
			Child: r.child(name), Annotations: annotations,
			StorageClassName: r.staging.Spec.StorageClassName,
			AccessModes:      r.staging.Spec.AccessModes,
			VolumeMode:       r.params.VolumeMode,
			Size:             r.staging.Spec.Resources.Requests[corev1.ResourceStorage],
			FromClaim:        r.childSet,
		}))
	}
	if err != nil {
		return false, err
	}
	if found.Status.Phase == corev1.ClaimBound {
		return true, nil
	}
	return false, r.refuseLateBinding(ctx)
}

// refuseLateBinding says that a clone will never be there: its class waits for a pod, and an image has none.
func (r *destinationRun) refuseLateBinding(ctx context.Context) error {
	name := ptr.Deref(r.staging.Spec.StorageClassName, "")
	if late, err := r.bindsLate(ctx, name); err != nil {
		return err
	} else if late {
		return r.missing(v1alpha1.ReasonStorageClassNotFound, fmt.Sprintf(
			"StorageClass %s binds only when a pod uses the claim, so a clone never becomes ready; set copyMethod to Snapshot or Direct, "+
				"or use a class with volumeBindingMode Immediate", name))
	}
	return nil
}

// bindsLate tells whether a class waits for the first pod.
func (r *destinationRun) bindsLate(ctx context.Context, name string) (bool, error) {
	class := &storagev1.StorageClass{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

// pruneImages removes what is more than the user keeps, oldest first, once a newer image is ready. One that a promotion
// holds, or that the user names for one, is never removed. An image leaves the list before it is deleted, so nothing is
// listed that is gone.
func (r *destinationRun) pruneImages(ctx context.Context) error {
	status, promote := &r.destination.Status, r.destination.Spec.Promote
	var kept []v1alpha1.Image
	for i, image := range status.Images {
		pinned := status.Promotion != nil && status.Promotion.Image == image.Name || promote != nil && promote.Image == image.Name
		if i < r.params.KeepImages || pinned {
			kept = append(kept, image)
		}
	}
	if len(kept) != len(status.Images) {
		status.Images = kept
		if err := r.persist(ctx); err != nil {
			return err
		}
	}
	state := build.Hash([]any{status.Images, status.PendingImage})
	if last, there := r.pruned.Load(r.destination.UID); there && last == state {
		return nil // nothing has come or gone since the last look
	}
	err := r.removeImages(ctx, func(kind, name string) bool {
		return slices.ContainsFunc(status.Images, func(i v1alpha1.Image) bool { return i.Kind == kind && i.Name == name })
	})
	if err == nil {
		r.pruned.Store(r.destination.UID, state)
	}
	return err
}

// removeImages deletes this Destination's images but for those to keep. They are found by label and not by a list of
// names, so none is left over whatever was interrupted.
func (r *destinationRun) removeImages(ctx context.Context, keep func(kind, name string) bool) error {
	mine := client.MatchingLabels{v1alpha1.LabelChild: r.childSet, v1alpha1.LabelOwnerUID: string(r.destination.UID)}
	snapshots := &snapshotv1.VolumeSnapshotList{}
	err := r.APIReader.List(ctx, snapshots, client.InNamespace(r.Options.VaultNamespace), mine)
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for i := range snapshots.Items {
		if snapshot := &snapshots.Items[i]; !keep(imageSnapshot, snapshot.Name) {
			if err := r.drop(ctx, snapshot); err != nil {
				return err
			}
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.APIReader.List(ctx, claims, client.InNamespace(r.Options.VaultNamespace), mine); err != nil {
		return err
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.Name != r.childSet && !keep(imageClaim, claim.Name) {
			if err := r.drop(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop deletes a child without waiting until it is gone.
func (r *destinationRun) drop(ctx context.Context, object client.Object) error {
	_, err := removal{client: r.Client, reader: r.APIReader, owner: r.destination}.gone(ctx, client.ObjectKeyFromObject(object), object)
	return err
}

// finalize removes everything of an unpromoted Destination from the vault; the staging volume only if the user does not
// want to keep it.
func (r *destinationRun) finalize(ctx context.Context) error {
	for _, name := range []string{r.childSet, names.Guard(r.childSet), names.Restored(r.childSet)} {
		if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(name)); err != nil {
			return err
		}
	}
	if err := r.leaveVolume(ctx); err != nil {
		return err
	}
	if err := r.removeImages(ctx, func(string, string) bool { return false }); err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.Service{}, &corev1.Secret{}} {
		if err := r.awaitGone(ctx, r.destination, object, r.key(r.childSet)); err != nil {
			return err
		}
	}
	if r.destination.Spec.DeletionPolicy == v1alpha1.DeletionRetain {
		r.note(r.destination, corev1.EventTypeNormal, "VolumeRetained", "Finalize", "staging claim %s stays in the vault", r.childSet)
	} else if err := r.removeStaging(ctx); err != nil {
		return err
	}
	r.shown.forget(r.destination.UID)
	r.pruned.Delete(r.destination.UID)
	return r.release(ctx, r.destination)
}

// removeStaging deletes the staging claim. The volume goes with it, unless it was a user's once: those are at Retain.
func (r *destinationRun) removeStaging(ctx context.Context) error {
	claim, err := r.findClaim(ctx, r.key(r.childSet))
	if err != nil || claim == nil {
		return err
	}
	pv, err := r.findPV(ctx, claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	if pv != nil && claim.DeletionTimestamp.IsZero() && pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] != "" {
		r.note(r.destination, corev1.EventTypeNormal, "VolumeRetained", "Finalize",
			"volume %s was a claim's of this namespace once and stays, with policy Retain", pv.Name)
	}
	return r.awaitGone(ctx, r.destination, claim, r.key(r.childSet))
}
