// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/params"
	"volferry.io/controller/internal/schedule"
)

// SourceReconciler runs a mover for each sync that a Source's triggers ask for.
type SourceReconciler struct {
	base
	adoption sync.Once
}

// sourceClaimIndex finds the Sources of a claim.
const sourceClaimIndex = "spec.source"

// +kubebuilder:rbac:groups=volferry.io,resources=sources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=volferry.io,resources=sources/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=volferry.io,resources=sources/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses;volumeattachments,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// sourceRun is one reconcile of one Source.
type sourceRun struct {
	*SourceReconciler
	source *v1alpha1.Source
	// persisted is the status as the API server has it.
	persisted v1alpha1.SourceStatus
	set       conditions.Setter
	now       time.Time
	childSet  string // name of the children, see names.Source

	params     *params.SourceParams
	schedule   *schedule.Schedule
	claim      *corev1.PersistentVolumeClaim
	copied     *corev1.PersistentVolumeClaim
	privileged bool
	// next is when the clock has something to do for this Source.
	next time.Duration
}

// Reconcile brings one Source on. The resource is read past the cache: its status decides what is done next, and an old
// one would do it twice.
func (r *SourceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.adoption.Do(func() { r.adoptRunning(ctx) })
	object := &v1alpha1.Source{}
	if err := r.APIReader.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if !v1alpha1.BuiltInMethod(object.Spec.ReplicationMethod) || !r.Options.Serves(object.Namespace) {
		return ctrl.Result{}, nil
	}
	run := &sourceRun{
		SourceReconciler: r,
		source:           object,
		persisted:        *object.Status.DeepCopy(),
		set:              conditions.For(&object.Status.Conditions, object.Generation),
		now:              r.Clock.Now(),
		childSet:         names.Source(object.Namespace, object.Name),
	}
	err := run.steps(ctx)
	if object.DeletionTimestamp.IsZero() {
		if message := trouble(err); message != "" {
			run.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
		}
		run.summarize(err)
		if persistErr := client.IgnoreNotFound(run.persist(ctx)); err == nil || persistErr != nil {
			err = persistErr
		}
	}
	return settle(ctx, err, run.next)
}

// adoptRunning counts the syncs that ran when this controller began, before any other can take their places.
func (r *SourceReconciler) adoptRunning(ctx context.Context) {
	list := &v1alpha1.SourceList{}
	if err := r.Client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot count the running syncs; the cap may be passed for a while")
		return
	}
	for i := range list.Items {
		if v1alpha1.BuiltInMethod(list.Items[i].Spec.ReplicationMethod) && list.Items[i].Status.ActiveSync != nil {
			r.Limiter.Adopt(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
}

func (r *SourceReconciler) forget(key types.NamespacedName) {
	metrics.Drop(names.RoleSource, key.Namespace, key.Name)
	r.Limiter.Release(key)
}

// steps of a reconcile, in order; each may end it.
func (r *sourceRun) steps(ctx context.Context) error {
	if !r.source.DeletionTimestamp.IsZero() {
		return r.finalize(ctx)
	}
	if err := r.adopt(ctx, r.source); err != nil {
		return err
	}
	r.source.Status.ObservedUID = string(r.source.UID)
	r.source.Status.ObservedGeneration = r.source.Generation
	if err := r.accept(ctx); err != nil {
		if errors.Is(err, errStalled) && r.calledOff() {
			return r.abortFinalSync(ctx)
		}
		return r.interrupted(ctx, err)
	}
	if usual, err := r.finalSync(ctx); !usual || err != nil {
		return err
	}
	if err := r.findVolume(ctx); err != nil {
		return r.interrupted(ctx, err)
	}
	if err := r.retainVolume(ctx); err != nil {
		return err
	}
	if r.source.Status.ActiveSync != nil {
		return r.advance(ctx)
	}
	return r.start(ctx)
}

// interrupted cleans up after a sync whose ground was taken away: parameters that became invalid, a volume that went. A
// read that failed takes nothing away.
func (r *sourceRun) interrupted(ctx context.Context, cause error) error {
	active := r.source.Status.ActiveSync
	if active == nil {
		// A place may have been taken for a sync that could not be put on record.
		r.Limiter.Release(client.ObjectKeyFromObject(r.source))
	}
	var wait *waitError
	if active == nil || !(errors.Is(cause, errStalled) || errors.As(cause, &wait)) {
		return cause
	}
	if active.Stage != v1alpha1.StageCleaningUp {
		if err := r.endSync(ctx, outcomeAbandoned); err != nil {
			return err
		}
	}
	if err := r.cleanUp(ctx); err != nil {
		return err
	}
	// Once more, so that the conditions say what took the ground away.
	return lookAgain("the abandoned sync", time.Millisecond)
}

// persist writes the status if it changed. It fails with a conflict if anybody wrote the resource since it was read, so a
// decision never rests on an old state.
func (r *sourceRun) persist(ctx context.Context) error {
	conditions.KeepTransitions(r.persisted.Conditions, r.source.Status.Conditions)
	if equality.Semantic.DeepEqual(r.persisted, r.source.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, r.source); err != nil {
		return err
	}
	r.persisted = *r.source.Status.DeepCopy()
	// The answer replaced the object's conditions.
	r.set = conditions.For(&r.source.Status.Conditions, r.source.Generation)
	return nil
}

// summarize sets what follows from the rest: the phase and the metrics.
func (r *sourceRun) summarize(err error) {
	status := &r.source.Status
	switch {
	case status.FinalSync != nil && status.FinalSync.Completed != nil:
		status.Phase = v1alpha1.SourceFenced
	case status.FinalSync != nil && status.FinalSync.Phase != v1alpha1.ReasonVolumeGone && !(status.Retry != nil && status.Retry.Permanent):
		status.Phase = v1alpha1.SourceFinalSync
	case status.FinalSync != nil:
		status.Phase = v1alpha1.SourceError
	case status.ActiveSync != nil:
		status.Phase = v1alpha1.SourceSyncing
	case r.set.Reason(v1alpha1.ConditionAccepted) != v1alpha1.ReasonAccepted, status.Retry != nil && status.Retry.Permanent:
		status.Phase = v1alpha1.SourceError
	case err != nil || r.set.Reason(v1alpha1.ConditionDependenciesReady) != v1alpha1.ReasonReady:
		status.Phase = v1alpha1.SourcePending
	default:
		status.Phase = v1alpha1.SourceIdle
	}
	r.measure()
}

// NewSourceReconciler makes the reconciler of Sources.
func NewSourceReconciler(services Services) *SourceReconciler {
	return &SourceReconciler{base: newBase(services)}
}

// SetupWithManager registers the reconciler and what wakes it.
func (r *SourceReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Source{}, sourceClaimIndex,
		func(object client.Object) []string { return []string{object.(*v1alpha1.Source).Spec.Source} })
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("source").
		For(&v1alpha1.Source{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged))).
		Watches(&batchv1.Job{}, ownedBy("Source")).
		Watches(&corev1.Pod{}, ownedBy("Source")).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.sourcesOfClaim)).
		WatchesRawSource(source.Channel(r.Limiter.Wake(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// sourcesOfClaim are the Sources that replicate a claim, and the one whose copy it is.
func (r *SourceReconciler) sourcesOfClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	list := &v1alpha1.SourceList{}
	err := r.Client.List(ctx, list, client.InNamespace(claim.GetNamespace()), client.MatchingFields{sourceClaimIndex: claim.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot tell whose claim this is", "claim", client.ObjectKeyFromObject(claim))
	}
	requests := ownerRequests("Source", claim)
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
