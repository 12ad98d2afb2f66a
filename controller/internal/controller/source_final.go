// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/volume"
)

// A final sync sends the last state of a volume that nobody writes any more. It waits until the workloads are gone, takes
// the volume into the vault, where nobody can mount it, and runs the mover there. Each pass begins with the first
// condition, until the volume is being taken, and then with its use, until the fence has settled; so it can be cut anywhere. spec.finalSync.id drives it, and is all that does.

// finalSyncOver tells whether a Source's final sync needs its volume no more. One that is asked for is not the one before it.
func finalSyncOver(source *v1alpha1.Source) bool {
	spec, status := source.Spec.FinalSync, source.Status.FinalSync
	if status == nil || spec != nil && spec.ID != status.ID {
		return false
	}
	return status.Completed != nil || status.Phase == v1alpha1.ReasonVolumeGone
}

// finalSyncAhead tells whether a Source is asked for a final sync that is not over.
func finalSyncAhead(source *v1alpha1.Source) bool {
	return source.Spec.FinalSync != nil && source.DeletionTimestamp.IsZero() && v1alpha1.BuiltInMethod(source.Spec.ReplicationMethod) &&
		!finalSyncOver(source)
}

// finalSync takes the final sync, or what follows it, as far as it goes now. It tells whether the Source goes on as usual.
func (r *sourceRun) finalSync(ctx context.Context) (usual bool, err error) {
	spec, status := r.source.Spec.FinalSync, r.source.Status.FinalSync
	switch {
	case spec == nil && status == nil:
		r.set.False(v1alpha1.ConditionFinalSynced, v1alpha1.ReasonNotRequested, "spec.finalSync is not set")
		return true, nil
	case r.calledOff():
		return false, r.abortFinalSync(ctx)
	case spec != nil && (status == nil || status.ID != spec.ID):
		if err := r.beginFinalSync(ctx); err != nil {
			return false, err
		}
	}
	if active := r.source.Status.ActiveSync; active != nil {
		switch {
		case active.FinalSyncID == "":
			r.finalPhase(v1alpha1.ReasonQuiescing, "the sync that runs comes to its end first")
			return true, nil
		case active.FinalSyncID != r.source.Status.FinalSync.ID, active.Stage == v1alpha1.StageCleaningUp:
			return false, r.endFinalMover(ctx)
		}
	}
	if r.source.Status.FinalSync.Completed != nil {
		return r.afterFinalSync(ctx)
	}
	return false, r.runFinalSync(ctx)
}

// beginFinalSync puts it on record. From then on no trigger starts anything.
func (r *sourceRun) beginFinalSync(ctx context.Context) error {
	status := &r.source.Status
	status.FinalSync = &v1alpha1.FinalSyncStatus{
		ID: r.source.Spec.FinalSync.ID, Phase: v1alpha1.ReasonQuiescing, Started: &metav1.Time{Time: r.now},
	}
	status.Retry = sameAttempt(status.Retry)
	return r.persist(ctx)
}

// tellReplaced says once that the claim has another volume by now, which is left alone: a live workload has made a new claim.
func (r *sourceRun) tellReplaced(ctx context.Context) error {
	status := &r.source.Status
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: r.source.Spec.Source})
	if err != nil || claim == nil || claim.Spec.VolumeName == "" {
		return err
	}
	name := claim.Spec.VolumeName
	if name == status.SourceVolume.PVName || name == status.FinalSync.ReplacedBy {
		return nil
	}
	status.FinalSync.ReplacedBy = name
	if err := r.persist(ctx); err != nil {
		return err
	}
	r.note(r.source, corev1.EventTypeWarning, "SourcePVCReplaced", "FinalSync",
		"claim %s has another volume by now, %s, which is left alone; volume %s is synced", claim.Name, name, status.SourceVolume.PVName)
	return nil
}

// lostToOthers forgets a fence whose volume went elsewhere since: a Destination has adopted what an earlier final sync held.
func (r *sourceRun) lostToOthers(ctx context.Context) error {
	fence := r.source.Status.Fence
	if fence == nil || !fence.Settled || r.source.Status.ActiveSync != nil {
		return nil
	}
	pv, err := r.findPV(ctx, fence.PVName)
	if key := r.finalObject(); err != nil || pv != nil && refers(pv, key.Namespace, key.Name) {
		return err
	}
	return r.giveBack(ctx, r.finalTaking())
}

// followPromotion goes on from a promotion since the Source's last sync, which began another epoch and may have given the
// claim another volume: that one is then synced. Without a claim it is the volume that is known, and its word. It tells
// whether there was such a promotion.
func (r *sourceRun) followPromotion(ctx context.Context) (bool, error) {
	recorded := r.source.Status.SourceVolume
	if recorded == nil || r.source.Status.Fence != nil || r.source.Status.ActiveSync != nil {
		return false, nil
	}
	claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: r.source.Spec.Source})
	if err != nil {
		return false, err
	}
	if claim != nil && claim.Spec.VolumeName != "" {
		pv, err := r.findPV(ctx, claim.Spec.VolumeName)
		if err != nil {
			return false, err
		}
		if pv != nil && boundTo(claim, pv) && r.outranked(pv) {
			r.claim = claim
			if err := r.recordVolume(ctx, pv); err != nil {
				return false, err
			}
			return true, r.retainVolume(ctx)
		}
	}
	pv, err := r.findPV(ctx, recorded.PVName)
	if err != nil || pv == nil || volume.Of(pv).HandleHash != recorded.HandleHash || !r.takeLineage(pv) {
		return false, err
	}
	return true, r.persist(ctx)
}

// finalPhase says where the final sync stands.
func (r *sourceRun) finalPhase(phase, message string) {
	status := r.source.Status.FinalSync
	status.Phase, status.Message = phase, message
	r.set.False(v1alpha1.ConditionFinalSynced, phase, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonFenced, "no schedule runs beside the final sync: "+message)
	r.source.Status.NextSyncTime = nil
}

// runFinalSync goes through the conditions, the fence and the sync.
func (r *sourceRun) runFinalSync(ctx context.Context) error {
	if err := r.lostToOthers(ctx); err != nil {
		return err
	}
	switch status := &r.source.Status; {
	case status.SourceVolume == nil:
		// Nothing is known of the volume yet.
		r.finalPhase(v1alpha1.ReasonQuiescing, fmt.Sprintf("claim %s has had no volume yet that could be synced", r.source.Spec.Source))
		if err := r.findVolume(ctx); err != nil {
			return err
		}
		if err := r.retainVolume(ctx); err != nil {
			return err
		}
	case status.Fence == nil && status.ActiveSync == nil:
		if _, err := r.followPromotion(ctx); err != nil {
			return err
		}
	}
	if gone, err := r.finalVolumeGone(ctx); gone || err != nil {
		return err
	}
	if err := r.tellReplaced(ctx); err != nil {
		return err
	}
	if fence := r.source.Status.Fence; fence == nil || !fence.Settled {
		// What has to come before is not asked again while the fence settles: only a look at the volume's use can undo it.
		if fence == nil {
			if err := r.readyToFence(ctx); err != nil {
				return err
			}
		}
		if err := r.fenceVolume(ctx); err != nil {
			return err
		}
	}
	return r.syncFinally(ctx)
}

// finalVolumeGone tells whether there is no volume that could be synced. That is final: data that are gone do not return.
func (r *sourceRun) finalVolumeGone(ctx context.Context) (bool, error) {
	recorded := r.source.Status.SourceVolume
	pv, err := r.findPV(ctx, recorded.PVName)
	if err != nil || pv != nil && volume.Of(pv).HandleHash == recorded.HandleHash {
		return false, err
	}
	if r.source.Status.ActiveSync != nil {
		return true, r.endFinalMover(ctx)
	}
	message := fmt.Sprintf("volume %s is gone: its claim was deleted, and its reclaim policy was not Retain; the peer has what the last sync sent", recorded.PVName)
	if r.source.Status.FinalSync.Phase != v1alpha1.ReasonVolumeGone {
		r.note(r.source, corev1.EventTypeWarning, "VolumeGone", "FinalSync", "%s", message)
	}
	r.finalPhase(v1alpha1.ReasonVolumeGone, message)
	return true, nil
}

// readyToFence waits for all that has to come before the volume is taken. Without a key there is no sync that it, or the
// workloads' end, would be for.
func (r *sourceRun) readyToFence(ctx context.Context) error {
	if err := r.finalKey(ctx, v1alpha1.ReasonQuiescing); err != nil {
		return err
	}
	busy, err := r.busyWorkload(ctx)
	if err != nil {
		return err
	}
	if busy != "" {
		r.finalPhase(v1alpha1.ReasonWaitingForWorkloads, busy)
		return lookAgain("the workloads' end", usePoll)
	}
	if r.source.Spec.FinalSync.WaitForPVCDeletion {
		claim, err := r.findClaim(ctx, client.ObjectKey{Namespace: r.source.Namespace, Name: r.source.Spec.Source})
		if err != nil {
			return err
		}
		if claim != nil && claim.DeletionTimestamp.IsZero() && claim.Spec.VolumeName == r.source.Status.SourceVolume.PVName {
			r.finalPhase(v1alpha1.ReasonWaitingForPVCDeletion, fmt.Sprintf("claim %s is to be deleted first", claim.Name))
			return lookAgain("the claim's deletion", usePoll)
		}
	}
	return nil
}

// finalKey copies the key into the vault, where the mover will run: before the fence, and again before each sync.
func (r *sourceRun) finalKey(ctx context.Context, phase string) error {
	if err := r.params.ReadyToSync(); err != nil {
		r.finalPhase(phase, err.Error())
		return errStalled
	}
	id, psk, lack, err := r.userKey(ctx, r.source.Namespace, r.params.KeySecret)
	if err != nil {
		return err
	}
	if lack != nil {
		r.finalPhase(phase, lack.message)
		return r.missing(lack.reason, lack.message)
	}
	// All that this sync depends on; the claim may be gone.
	r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, "the volume and the key are there")
	return apply(ctx, r.Client, build.KeySecret(r.finalChild(), []byte(id), []byte(psk)))
}

// finalChild is the claim, the Secret and the Job that a final sync has in the vault.
func (r *sourceRun) finalChild() build.Child {
	name := names.FinalSync(r.source.Namespace, r.source.Name)
	return build.Child{Kind: "Source", Owner: r.source, Namespace: r.Options.VaultNamespace, Name: name, Set: name}
}

func (r *sourceRun) finalObject() client.ObjectKey {
	child := r.finalChild()
	return client.ObjectKey{Namespace: child.Namespace, Name: child.Name}
}

func (r *sourceRun) finalTaking() taking {
	t := taking{child: r.finalChild(), pvcName: r.source.Spec.Source, fence: &r.source.Status.Fence, persist: r.persist}
	if recorded := r.source.Status.SourceVolume; recorded != nil {
		t.pvName = recorded.PVName
	}
	return t
}

// fenceVolume takes the volume into the vault.
func (r *sourceRun) fenceVolume(ctx context.Context) error {
	r.finalPhase(v1alpha1.ReasonFencing, fmt.Sprintf("volume %s is taken from claim %s", r.source.Status.SourceVolume.PVName, r.source.Spec.Source))
	err := r.take(ctx, r.finalTaking())
	var used *inUseError
	if errors.As(err, &used) {
		if r.source.Status.FinalSync.Phase != v1alpha1.ReasonInUse && reasonBefore(r.persisted) != v1alpha1.ReasonInUse {
			r.note(r.source, corev1.EventTypeWarning, "SourceInUse", "FinalSync", "%s", used.who)
		}
		r.finalPhase(v1alpha1.ReasonInUse, used.who)
		return lookAgain("the end of its use", usePoll)
	}
	if err != nil {
		return err
	}
	r.note(r.source, corev1.EventTypeNormal, "Fenced", "FinalSync", "volume %s was taken from claim %s; nobody can mount it until the final sync is over",
		r.source.Status.SourceVolume.PVName, r.source.Spec.Source)
	return nil
}

func reasonBefore(status v1alpha1.SourceStatus) string {
	if status.FinalSync == nil {
		return ""
	}
	return status.FinalSync.Phase
}

// syncFinally runs the mover on the fenced volume, tried again until it has succeeded.
func (r *sourceRun) syncFinally(ctx context.Context) error {
	status := &r.source.Status
	if status.ActiveSync == nil {
		r.finalPhase(v1alpha1.ReasonSyncing, "the last state is being sent")
		if retry := status.Retry; retry != nil && retry.Generation == r.source.Generation {
			r.finalPhase(v1alpha1.ReasonSyncing, r.failureMessage())
			switch {
			case retry.Permanent:
				r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, r.failureMessage())
				return errStalled
			case retry.NextAttempt != nil && r.now.Before(retry.NextAttempt.Time):
				return lookAgain("the next try", until(r.now, retry.NextAttempt.Time))
			}
		}
		// The key, too, may have been edited since the fence.
		if err := r.finalKey(ctx, v1alpha1.ReasonSyncing); err != nil {
			return err
		}
		if !r.Limiter.Acquire(client.ObjectKeyFromObject(r.source)) {
			return waitFor("a free place")
		}
		attempt := string(uuid.NewUUID())
		if status.Retry != nil && status.Retry.AttemptID != "" {
			attempt = status.Retry.AttemptID
		}
		// It serves none of the triggers' requests: those wait until the Source goes on as usual.
		status.ActiveSync = &v1alpha1.ActiveSync{
			Seq: r.seq() + 1, AttemptID: attempt, Start: metav1.NewMicroTime(r.now), Stage: v1alpha1.StageMoving,
			Try: 1, FinalSyncID: status.FinalSync.ID,
		}
		status.LastSyncStartTime = &metav1.Time{Time: r.now}
		if err := r.persist(ctx); err != nil {
			return err
		}
		r.note(r.source, corev1.EventTypeNormal, "TransferStarted", "FinalSync", "sync %d is final sync %s", status.ActiveSync.Seq, status.FinalSync.ID)
	}
	if status.ActiveSync.Stage == v1alpha1.StageMoving {
		r.synchronizing("the last state is being sent")
		if err := r.move(ctx); err != nil {
			return err
		}
	}
	return r.endFinalMover(ctx)
}

// endFinalMover removes the mover of a final sync that is over, or that is not wanted any more.
func (r *sourceRun) endFinalMover(ctx context.Context) error {
	if r.source.Status.ActiveSync.Stage != v1alpha1.StageCleaningUp {
		if err := r.endSync(ctx, outcomeAbandoned); err != nil {
			return err
		}
	}
	if err := r.cleanUp(ctx); err != nil {
		return err
	}
	return lookAgain("what follows the final sync", time.Millisecond)
}
