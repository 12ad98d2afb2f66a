// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/names"
)

// A volume is taken from a user's claim into the vault by pointing its claimRef at a claim there. From that write on
// kubelets and the attach controller refuse the user's claim, which becomes Lost. A pod may have started just before, so
// the use check is made before the write, while the fence settles, and at its end; whoever is found then gets the volume
// back. Neither the user's claim nor its deletion matters: the volume is what is taken.

// usePoll is how often a use is looked for again: pods of users are not watched.
const usePoll = 2 * time.Second

// taking is a volume that is to go into the vault.
type taking struct {
	// child is the vault's claim that gets it.
	child build.Child
	// pvName is the volume, pvcName the claim of the owner's namespace that it is taken from.
	pvName, pvcName string
	// fence is the place in the owner's status where the taking is on record, and persist writes that.
	fence   **v1alpha1.Fence
	persist func(context.Context) error
}

func (t taking) namespace() string { return t.child.Owner.GetNamespace() }

func (t taking) owner() client.Object { return t.child.Owner.(client.Object) }

func (t taking) key() client.ObjectKey {
	return client.ObjectKey{Namespace: t.child.Namespace, Name: t.child.Name}
}

// take brings a volume into the vault and returns nil once it is there and the fence has settled. The error is an
// *inUseError where somebody uses it; then it is the user's again.
func (b *base) take(ctx context.Context, t taking) error {
	pv, err := b.findPV(ctx, t.pvName)
	if err != nil {
		return err
	}
	if pv == nil {
		return fmt.Errorf("volume %s, which is to be taken from claim %s, is gone", t.pvName, t.pvcName)
	}
	if *t.fence != nil && (*t.fence).Settled {
		return nil
	}
	if who, err := b.othersVolume(ctx, t, pv); who != "" || err != nil {
		if err != nil {
			return err
		}
		return b.rollBack(ctx, t, pv, who)
	}
	if who := b.inUse(ctx, pv, t.namespace(), t.pvcName); who != "" {
		return b.rollBack(ctx, t, pv, who)
	}
	if err := b.recordFence(ctx, t, pv); err != nil {
		return err
	}
	if err := b.redirectToVault(ctx, t, pv); err != nil {
		return err
	}
	if err := b.vaultClaim(ctx, t, pv); err != nil {
		return err
	}
	if left := b.settling(pv); left > 0 {
		return lookAgain("the fence to settle", min(left, time.Second))
	}
	if who := b.inUse(ctx, pv, t.namespace(), t.pvcName); who != "" {
		return b.rollBack(ctx, t, pv, who)
	}
	(*t.fence).Settled = true
	return t.persist(ctx)
}

// redirectToVault points the volume at the vault's claim, and lets the binder see at once that the user's claim has lost it:
// else that claim would go on saying Bound until the binder's next round.
func (b *base) redirectToVault(ctx context.Context, t taking, pv *corev1.PersistentVolume) error {
	there, err := b.inVaultsHands(ctx, t, pv)
	if err != nil {
		return err
	}
	if !there {
		fenced := map[string]string{v1alpha1.AnnotationFencedAt: b.Clock.Now().UTC().Format(time.RFC3339Nano)}
		if err := b.redirect(ctx, pv, claimRef{namespace: t.child.Namespace, name: t.child.Name}, fenced); err != nil {
			return err
		}
	}
	claim, err := b.findClaim(ctx, client.ObjectKey{Namespace: t.namespace(), Name: t.pvcName})
	if err != nil || claim == nil || claim.Spec.VolumeName != pv.Name || claim.Status.Phase != corev1.ClaimBound {
		return err
	}
	return b.wake(ctx, claim, pv)
}

// inVaultsHands tells whether a volume refers to the vault's claim, and not to one of that name that is gone: to such a
// reference nothing would ever be bound.
func (b *base) inVaultsHands(ctx context.Context, t taking, pv *corev1.PersistentVolume) (bool, error) {
	if !refers(pv, t.child.Namespace, t.child.Name) || pv.Spec.ClaimRef.UID == "" {
		return refers(pv, t.child.Namespace, t.child.Name), nil
	}
	claim, err := b.findClaim(ctx, t.key())
	return claim != nil && claim.UID == pv.Spec.ClaimRef.UID, err
}

// othersVolume says whose a volume is that must not be taken for this owner; empty: it may be. A claim can name any volume
// of the cluster, so only the volume's own word counts: it has to refer to the claim it is taken from, to our claim, or to
// that of a final sync of the same namespace that is over.
func (b *base) othersVolume(ctx context.Context, t taking, pv *corev1.PersistentVolume) (string, error) {
	reference := pv.Spec.ClaimRef
	if reference == nil {
		return fmt.Sprintf("volume %s does not belong to claim %s", pv.Name, t.pvcName), nil
	}
	if refers(pv, t.namespace(), t.pvcName) || refers(pv, t.child.Namespace, t.child.Name) {
		return "", nil
	}
	if reference.Namespace == t.child.Namespace {
		list := &v1alpha1.SourceList{}
		if err := b.APIReader.List(ctx, list, client.InNamespace(t.namespace())); err != nil {
			return "", fmt.Errorf("look for the final sync that has volume %s: %w", pv.Name, err)
		}
		for i := range list.Items {
			source := &list.Items[i]
			switch {
			case names.FinalSync(source.Namespace, source.Name) != reference.Name:
			case finalSyncOver(source):
				return "", nil
			default:
				return fmt.Sprintf("the final sync of Source %s has volume %s and is not over", source.Name, pv.Name), nil
			}
		}
	}
	return fmt.Sprintf("volume %s belongs to another claim by now, not to %s", pv.Name, t.pvcName), nil
}

// rollBack gives up because somebody uses the volume.
func (b *base) rollBack(ctx context.Context, t taking, pv *corev1.PersistentVolume, who string) error {
	if refers(pv, t.child.Namespace, t.child.Name) {
		b.note(t.owner(), corev1.EventTypeWarning, "FenceRolledBack", "TakeVolume",
			"volume %s goes back to claim %s: %s", pv.Name, t.pvcName, who)
	}
	if err := b.giveBack(ctx, t); err != nil {
		return err
	}
	return &inUseError{who: who}
}

// recordFence puts on record, before the first write, whom the volume is to be given back to.
func (b *base) recordFence(ctx context.Context, t taking, pv *corev1.PersistentVolume) error {
	if *t.fence != nil {
		return nil
	}
	fence := &v1alpha1.Fence{PVName: pv.Name, PVCName: t.pvcName}
	if refers(pv, t.namespace(), t.pvcName) {
		fence.PVCUID = string(pv.Spec.ClaimRef.UID)
	} else if claim, err := b.findClaim(ctx, client.ObjectKey{Namespace: t.namespace(), Name: t.pvcName}); err != nil {
		return err
	} else if claim != nil && claim.Spec.VolumeName == pv.Name {
		fence.PVCUID = string(claim.UID)
	}
	*t.fence = fence
	return t.persist(ctx)
}

// settling is how long a fence has still to stand.
func (b *base) settling(pv *corev1.PersistentVolume) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, pv.Annotations[v1alpha1.AnnotationFencedAt])
	if err != nil {
		return 0
	}
	return at.Add(b.Options.FenceSettle).Sub(b.Clock.Now())
}

// vaultClaim makes the claim that has the volume in the vault, and waits until it is bound.
func (b *base) vaultClaim(ctx context.Context, t taking, pv *corev1.PersistentVolume) error {
	claim, err := b.findClaim(ctx, t.key())
	if err != nil {
		return err
	}
	if claim == nil {
		claim = build.ClaimFor(t.child, pv)
		if err := apply(ctx, b.Client, claim); err != nil {
			return err
		}
	}
	if claim.Spec.VolumeName != pv.Name {
		// An older one of the same name, of another volume.
		if err := b.awaitGone(ctx, t.owner(), claim, t.key()); err != nil {
			return err
		}
		return lookAgain("the claim's successor", time.Millisecond)
	}
	if !claim.DeletionTimestamp.IsZero() {
		return lookAgain("the deletion of claim "+claim.Name, deletionPoll)
	}
	if _, err := takeOver(ctx, b.Client, t.owner(), claim); err != nil {
		return err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return lookAgain("claim "+claim.Name+" to be bound in the vault", deletionPoll)
	}
	return nil
}

// restorePolicy gives a volume whose claim is there the policy that it had, unless a Source needs it retained.
func (b *base) restorePolicy(ctx context.Context, pv *corev1.PersistentVolume, namespace string) error {
	original := pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy]
	if original == "" {
		return nil
	}
	if needed, err := b.retainedBySource(ctx, namespace, pv.Name, ""); needed || err != nil {
		return err
	}
	return b.patchPolicy(ctx, pv, corev1.PersistentVolumeReclaimPolicy(original), "")
}

// giveBack undoes a taking, as far as it has come: the volume refers to the user's claim again, by the same uid, so that
// the very same claim is bound again. Of a volume that somebody else has taken meanwhile only our claim goes.
func (b *base) giveBack(ctx context.Context, t taking) error {
	fence := *t.fence
	if fence == nil {
		return nil
	}
	pv, err := b.findPV(ctx, fence.PVName)
	if err != nil {
		return err
	}
	claim, err := b.findClaim(ctx, client.ObjectKey{Namespace: t.namespace(), Name: fence.PVCName})
	if err != nil {
		return err
	}
	if pv != nil && refers(pv, t.child.Namespace, t.child.Name) {
		// For a claim that is gone the volume is kept by name, also where another one waits for it already.
		to := claimRef{namespace: t.namespace(), name: fence.PVCName}
		if claim != nil && (string(claim.UID) == fence.PVCUID || wants(claim, pv)) {
			to.uid = claim.UID
		}
		if err := b.redirect(ctx, pv, to, map[string]string{v1alpha1.AnnotationFencedAt: ""}); err != nil {
			return err
		}
	}
	if err := b.awaitGone(ctx, t.owner(), &corev1.PersistentVolumeClaim{}, t.key()); err != nil {
		return err
	}
	if pv != nil && claim != nil && refers(pv, claim.Namespace, claim.Name) && pv.Spec.ClaimRef.UID == claim.UID {
		if err := b.wake(ctx, claim, pv); err != nil {
			return err
		}
		if err := b.restorePolicy(ctx, pv, claim.Namespace); err != nil {
			return err
		}
	}
	*t.fence = nil
	return t.persist(ctx)
}
