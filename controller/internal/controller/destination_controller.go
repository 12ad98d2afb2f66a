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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/conditions"
	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/params"
)

// DestinationReconciler keeps a hidden staging volume, a mover that listens for its Source, and images of what arrived.
type DestinationReconciler struct {
	base
	// pruned remembers for which images it was made sure that no others are left: types.UID -> hash.
	pruned sync.Map
}

// +kubebuilder:rbac:groups=volferry.io,resources=destinations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=volferry.io,resources=destinations/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=volferry.io,resources=destinations/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=services;secrets,verbs=get;list;watch;create;patch;delete,namespace=volferry-system

// A mover of the vault is ended by its pod's deadline, so that its result stays.
// +kubebuilder:rbac:groups="",resources=pods,verbs=patch,namespace=volferry-system

// destinationRun is one reconcile of one Destination.
type destinationRun struct {
	*DestinationReconciler
	destination *v1alpha1.Destination
	// persisted is the status as the API server has it.
	persisted v1alpha1.DestinationStatus
	set       conditions.Setter
	now       time.Time
	childSet  string // name of the children, see names.Destination

	params     *params.DestinationParams
	privileged bool
	staging    *corev1.PersistentVolumeClaim
	// keyVersion changes with the content of the key.
	keyVersion string
	next       time.Duration
}

// Reconcile brings one Destination on. The resource is read past the cache, see SourceReconciler.
func (r *DestinationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.Destination{}
	if err := r.APIReader.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			metrics.Drop(names.RoleDestination, request.Namespace, request.Name)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if !v1alpha1.BuiltInMethod(object.Spec.ReplicationMethod) || !r.Options.Serves(object.Namespace) {
		return ctrl.Result{}, nil
	}
	run := &destinationRun{
		DestinationReconciler: r,
		destination:           object,
		persisted:             *object.Status.DeepCopy(),
		set:                   conditions.For(&object.Status.Conditions, object.Generation),
		now:                   r.Clock.Now(),
		childSet:              names.Destination(object.Namespace, object.Name),
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

// steps of a reconcile, in order; each may end it.
func (r *destinationRun) steps(ctx context.Context) error {
	if !r.destination.DeletionTimestamp.IsZero() {
		return r.finalize(ctx)
	}
	if err := r.adopt(ctx, r.destination); err != nil {
		return err
	}
	r.destination.Status.ObservedUID = string(r.destination.UID)
	r.destination.Status.ObservedGeneration = r.destination.Generation
	if err := r.accept(ctx); err != nil {
		if promotion := r.destination.Status.Promotion; errors.Is(err, errStalled) && promotion != nil && r.destination.Status.Staging == nil &&
			r.destination.Spec.Promote == nil {
			return r.demote(ctx) // which needs no parameters where nothing has been listening
		}
		return err
	}
	if r.destination.Status.Promotion != nil {
		return r.promotion(ctx)
	}
	// A promotion waits neither for a key nor for an image that is just being made, hence the first look at it.
	for _, step := range []func(context.Context) error{
		r.considerPromotion, r.ensureKey, r.ensureStaging, r.ensureService, r.finishImage, r.pruneImages, r.considerPromotion, r.listen,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// persist writes the status if it changed, see sourceRun.persist.
func (r *destinationRun) persist(ctx context.Context) error {
	conditions.KeepTransitions(r.persisted.Conditions, r.destination.Status.Conditions)
	if equality.Semantic.DeepEqual(r.persisted, r.destination.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, r.destination); err != nil {
		return err
	}
	r.persisted = *r.destination.Status.DeepCopy()
	r.set = conditions.For(&r.destination.Status.Conditions, r.destination.Generation)
	return nil
}

// summarize sets what follows from the rest: the phase, ImageAvailable and the metrics.
func (r *destinationRun) summarize(err error) {
	status := &r.destination.Status
	switch latest := status.LatestImage; {
	case r.set.Reason(v1alpha1.ConditionImageAvailable) == v1alpha1.ReasonSnapshotFailed:
	case latest == nil:
		r.set.False(v1alpha1.ConditionImageAvailable, v1alpha1.ReasonNoSyncYet, "no transfer has completed yet")
	case latest.Kind == imageStaging && r.knownCut():
		r.set.False(v1alpha1.ConditionImageAvailable, v1alpha1.ReasonImageInconsistent, inconsistent)
	default:
		r.set.True(v1alpha1.ConditionImageAvailable, v1alpha1.ReasonAvailable, "image "+latest.Name+" holds a complete transfer")
	}
	switch {
	case status.Promotion != nil:
		status.Phase = map[v1alpha1.PromotionState]v1alpha1.DestinationPhase{
			v1alpha1.PromotionPromoting: v1alpha1.DestinationPromoting, v1alpha1.PromotionPromoted: v1alpha1.DestinationPrimary,
			v1alpha1.PromotionDemoting: v1alpha1.DestinationDemoting,
		}[status.Promotion.State]
	case r.set.Reason(v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonListening,
		r.set.Reason(v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonSyncInProgress:
		status.Phase = v1alpha1.DestinationListening
	case r.set.Reason(v1alpha1.ConditionAccepted) != v1alpha1.ReasonAccepted, status.Retry != nil && status.Retry.Permanent:
		status.Phase = v1alpha1.DestinationError
	default:
		status.Phase = v1alpha1.DestinationPending
	}
	r.measure()
}

// accept checks what the user asks for and sets Accepted.
func (r *destinationRun) accept(ctx context.Context) error {
	var err error
	if r.privileged, err = r.base.privileged(ctx, r.destination.Namespace); err != nil {
		return err
	}
	r.params, err = params.ParseDestination(r.destination.Spec.Parameters, params.Options{
		PrivilegedMovers: r.privileged, Adopting: r.destination.Spec.Adopt != nil,
	})
	if err != nil {
		return r.reject(ctx, rejectionReason(err), err.Error())
	}
	r.set.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "the specification is valid")
	if r.set.Reason(v1alpha1.ConditionPeerVerified) == "" {
		r.set.Unknown(v1alpha1.ConditionPeerVerified, v1alpha1.ReasonNotContacted, "no Source has connected yet")
	}
	return nil
}

// reject says why the resource is not accepted. A listener that was made under other terms is ended.
func (r *destinationRun) reject(ctx context.Context, reason, message string) error {
	r.set.False(v1alpha1.ConditionAccepted, reason, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, "not accepted: "+message)
	mover, err := r.findJob(ctx, r.key(r.childSet))
	if err != nil {
		return err
	}
	if mover.job != nil && mover.finished() {
		// What it has received is taken in once the resource is accepted again.
		return errStalled
	}
	if mover.job != nil {
		if err := r.noteListener(ctx, mover); err != nil {
			return err
		}
	}
	if err := r.awaitGone(ctx, r.destination, &batchv1.Job{}, r.key(r.childSet)); err != nil {
		return err
	}
	return errStalled
}

func (r *destinationRun) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Options.VaultNamespace, Name: name}
}

// child of this Destination, in the vault.
func (r *destinationRun) child(name string) build.Child {
	return build.Child{Kind: "Destination", Owner: r.destination, Namespace: r.Options.VaultNamespace, Name: name, Set: r.childSet}
}

func (r *destinationRun) labels() metrics.Labels {
	return metrics.Labels{Namespace: r.destination.Namespace, Name: r.destination.Name, Role: names.RoleDestination, Method: v1alpha1.MethodRsync}
}

// missing names something that has to appear, and looks for it now and then.
func (r *destinationRun) missing(reason, message string) error {
	if conditions.ReasonOf(r.persisted.Conditions, v1alpha1.ConditionDependenciesReady) != reason {
		r.note(r.destination, corev1.EventTypeWarning, "DependencyMissing", "CheckDependencies", "%s", message)
	}
	r.set.False(v1alpha1.ConditionDependenciesReady, reason, message)
	r.set.False(v1alpha1.ConditionSynchronizing, v1alpha1.ReasonError, message)
	return lookAgain(message, dependencyPoll)
}

// NewDestinationReconciler makes the reconciler of Destinations.
func NewDestinationReconciler(services Services) *DestinationReconciler {
	return &DestinationReconciler{base: newBase(services)}
}

// SetupWithManager registers the reconciler and what wakes it.
func (r *DestinationReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("destination").
		For(&v1alpha1.Destination{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged))).
		Watches(&batchv1.Job{}, ownedBy("Destination")).
		Watches(&corev1.Pod{}, ownedBy("Destination")).
		Watches(&corev1.PersistentVolumeClaim{}, ownedBy("Destination")).
		Watches(&corev1.Service{}, ownedBy("Destination")).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}
