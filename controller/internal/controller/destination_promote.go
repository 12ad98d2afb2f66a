// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/volume"
)

// A promotion goes Stopping (the listener ends and says whether anybody had connected), Restoring (only where the staging
// volume does not hold the image), Rebinding (the volume goes to the user's claim). Each is on record before it begins.

// stopPatience is how long a listener that is just starting may take to be ready to say that nobody has connected. Without
// its word the staging volume counts as dirty.
const stopPatience = time.Minute

// considerPromotion begins a promotion that is asked for and possible, and else says what it waits for.
func (r *destinationRun) considerPromotion(ctx context.Context) error {
	promote := r.destination.Spec.Promote
	if promote == nil {
		r.set.False(v1alpha1.ConditionPromoted, v1alpha1.ReasonNotRequested, "spec.promote is not set")
		return nil
	}
	if reason, message := r.notPromotable(promote); reason != "" {
		r.blocked(reason, message)
		return nil
	}
	status := &r.destination.Status
	status.Promotion = &v1alpha1.PromotionStatus{
		State:   v1alpha1.PromotionPromoting,
		Step:    v1alpha1.StepStopping,
		PVCName: r.promotedName(promote),
		Epoch:   r.nextEpoch(),
		Time:    &metav1.Time{Time: r.now},
	}
	if namesImage(promote) {
		status.Promotion.Image = promote.Image // pinned from now on
	}
	if err := r.persist(ctx); err != nil {
		return err
	}
	return lookAgain("the promotion", time.Millisecond)
}

func (r *destinationRun) promotedName(promote *v1alpha1.PromoteSpec) string {
	if promote.PVCName != "" {
		return promote.PVCName
	}
	return r.destination.Name
}

func (r *destinationRun) epoch() string {
	if r.destination.Status.Lineage == nil {
		return ""
	}
	return r.destination.Status.Lineage.Epoch
}

// nextEpoch is the one that a promotion begins.
func (r *destinationRun) nextEpoch() string {
	highest := int64(0)
	if lineage := r.destination.Status.Lineage; lineage != nil {
		highest = max(lineage.HighestEpoch, 0)
	}
	return volume.NextEpoch(r.epoch(), uint64(highest), string(uuid.NewUUID())[:8])
}

func namesImage(promote *v1alpha1.PromoteSpec) bool {
	return promote.Image != "" && promote.Image != v1alpha1.ImageLatest
}

// notPromotable says why a promotion cannot begin yet; an empty reason: it can.
func (r *destinationRun) notPromotable(promote *v1alpha1.PromoteSpec) (reason, message string) {
	status := &r.destination.Status
	if id := promote.RequireFinalSync; id != "" && (status.LastReceived == nil || status.LastReceived.FinalSyncID != id) {
		return v1alpha1.ReasonWaitingForFinalSync, fmt.Sprintf("final sync %s has not arrived yet", id)
	}
	latest := r.latest()
	if latest == nil || status.Staging == nil {
		return v1alpha1.ReasonNoImage, "no transfer has completed yet; the first one will be promoted"
	}
	// The staging volume itself is an image only as long as nothing newer has come into it.
	if image := r.image(promote.Image); namesImage(promote) && promote.Image != latest.Name && (image == nil || image.Kind == imageStaging) {
		return v1alpha1.ReasonNoImage, fmt.Sprintf("there is no image %s; there are: %s", promote.Image, r.imageNames())
	}
	promotesStaging := latest.Kind == imageStaging && (!namesImage(promote) || promote.Image == latest.Name)
	if promotesStaging && r.knownCut() && !promote.AllowInconsistent {
		return v1alpha1.ReasonImageInconsistent, inconsistent
	}
	return "", ""
}

const inconsistent = "a transfer into the volume was cut, so it holds a part of it; the next completed transfer will be promoted. " +
	"spec.promote.allowInconsistent takes it as it is"

// latest is the newest image, also where it is still being made: nothing has been received since.
func (r *destinationRun) latest() *v1alpha1.Image {
	if pending := r.destination.Status.PendingImage; pending != nil {
		return &pending.Image
	}
	return r.destination.Status.LatestImage
}

func (r *destinationRun) image(name string) *v1alpha1.Image {
	images := r.destination.Status.Images
	if i := slices.IndexFunc(images, func(i v1alpha1.Image) bool { return i.Name == name }); i >= 0 {
		return &images[i]
	}
	return nil
}

func (r *destinationRun) imageNames() string {
	var all []string
	for _, image := range r.destination.Status.Images {
		all = append(all, image.Name)
	}
	return strings.Join(all, ", ")
}

// blocked says why the volume is not promoted; an event tells of each new reason.
func (r *destinationRun) blocked(reason, message string) {
	if r.set.Reason(v1alpha1.ConditionPromoted) != reason && conditions.ReasonOf(r.persisted.Conditions, v1alpha1.ConditionPromoted) != reason {
		event := "PromotionBlocked"
		if reason == v1alpha1.ReasonPVCConflict {
			event = "PVCConflict"
		}
		r.note(r.destination, corev1.EventTypeWarning, event, "Promote", "%s: %s", reason, message)
	}
	r.set.False(v1alpha1.ConditionPromoted, reason, message)
}

// promotion takes a promotion, or what undoes it, as far as it goes now.
func (r *destinationRun) promotion(ctx context.Context) error {
	if err := r.followEdit(ctx); err != nil {
		return err
	}
	promotion := r.destination.Status.Promotion
	switch {
	case promotion.State == v1alpha1.PromotionDemoting, r.destination.Spec.Promote == nil:
		return r.demote(ctx)
	case promotion.State == v1alpha1.PromotionPromoted:
		return r.stayPromoted(ctx)
	}
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonPromoted, "nobody listens: the volume is being promoted")
	if promotion.Step == v1alpha1.StepStopping {
		r.set.False(v1alpha1.ConditionPromoted, v1alpha1.ReasonRebinding, "the listener is being ended")
		if err := r.closeService(ctx); err != nil {
			return err
		}
		if err := r.stopListener(ctx); err != nil {
			return err
		}
		if err := r.selectVolume(ctx); err != nil {
			return err
		}
	}
	if r.destination.Status.Promotion.Step == v1alpha1.StepRestoring {
		if err := r.restoreImage(ctx); err != nil {
			return err
		}
	}
	return r.rebind(ctx)
}

// followEdit takes over what the user has changed of spec.promote while that is still possible: the name of the claim as long
// as the volume is in the vault, and a demotion that was called off as long as it has taken nothing.
func (r *destinationRun) followEdit(ctx context.Context) error {
	status, promote := &r.destination.Status, r.destination.Spec.Promote
	promotion := status.Promotion
	if promote == nil {
		return nil
	}
	name := r.promotedName(promote)
	renamed := promotion.State == v1alpha1.PromotionPromoting && promotion.PVCName != name
	returns := promotion.State == v1alpha1.PromotionDemoting && promotion.PVCName == name && promotion.PVName != "" && status.Fence == nil
	if !renamed && !returns {
		return nil
	}
	pv, err := r.findPV(ctx, promotion.PVName)
	if err != nil {
		return err
	}
	switch outside := pv != nil && !r.inVault(pv); {
	case renamed && !outside:
		if err := r.spare(ctx, promotion.PVCName); err != nil {
			return err
		}
		promotion.PVCName = name
	case returns && outside && promotion.Step == "":
		promotion.State = v1alpha1.PromotionPromoted
	case returns && outside:
		promotion.State = v1alpha1.PromotionPromoting
	}
	return r.persist(ctx)
}

// stopListener ends the listener for a promotion: what it has received is taken in.
func (r *destinationRun) stopListener(ctx context.Context) error {
	if done, err := r.takeIn(ctx); done || err != nil {
		return err
	}
	starting := r.now.Sub(r.destination.Status.Promotion.Time.Time) < stopPatience
	return r.endListener(ctx, starting)
}

func (r *destinationRun) knownCut() bool {
	staging := r.destination.Status.Staging
	return staging != nil && staging.Dirty && staging.Cut
}

// selectVolume decides which volume is promoted: the staging volume itself where it holds the image, else a new one into
// which the image is restored.
func (r *destinationRun) selectVolume(ctx context.Context) error {
	status, promote := &r.destination.Status, r.destination.Spec.Promote
	promotion, latest := status.Promotion, r.latest()
	if promotion.Image == latest.Name {
		promotion.Image = ""
	}
	switch wantsLatest := promotion.Image == ""; {
	case wantsLatest && (!status.Staging.Dirty || latest.Kind == imageStaging && promote.AllowInconsistent):
		promotion.Image, promotion.Step = latest.Name, v1alpha1.StepRebinding
		promotion.Claim, promotion.PVName = r.childSet, status.Staging.PVName
	case wantsLatest && latest.Kind == imageStaging:
		status.Promotion = nil
		status.Staging.Cut = true
		r.blocked(v1alpha1.ReasonImageInconsistent, inconsistent)
		if err := r.persist(ctx); err != nil {
			return err
		}
		return lookAgain("the next transfer", time.Millisecond)
	default:
		if wantsLatest {
			promotion.Image = latest.Name
		}
		promotion.Step, promotion.Claim = v1alpha1.StepRestoring, names.Restored(r.childSet)
	}
	return r.persist(ctx)
}
