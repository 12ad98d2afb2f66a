// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/limiter"
	"volferry.io/controller/internal/moverresult"
)

// How often what no watch reports is looked at.
const (
	deletionPoll = time.Second
	snapshotPoll = time.Second
	progressPoll = 5 * time.Second
	// listenPoll is for movers that wait for a Source; their end is watched.
	listenPoll = 15 * time.Second
	// dependencyPoll is for classes and secrets, which are not watched.
	dependencyPoll = 15 * time.Second
)

// Options of both controllers, from the command line.
type Options struct {
	// VaultNamespace holds staging volumes and receive movers.
	VaultNamespace string
	// Namespaces that are served; empty: all.
	Namespaces []string
	// MoverImage that Jobs run, and the secrets to pull it with.
	MoverImage  string
	PullSecrets []string
	// StartJitter is the most by which the start of a scheduled sync is put off.
	StartJitter time.Duration
	// RetryDelay is the first pause after a failure; it doubles up to RetryDelayMax.
	RetryDelay, RetryDelayMax time.Duration
	// FenceSettle is how long a volume that was taken from a claim is watched for a late user.
	FenceSettle time.Duration
}

// Serves tells whether resources of a namespace are this controller's.
func (o Options) Serves(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}

// Defaults fills in what is not set.
func (o Options) Defaults() Options {
	if o.RetryDelay == 0 {
		o.RetryDelay = 10 * time.Second
	}
	if o.RetryDelayMax == 0 {
		o.RetryDelayMax = 10 * time.Minute
	}
	return o
}

// backoff after so many failures in a row.
func (o Options) backoff(failures int32) time.Duration {
	delay := o.RetryDelay
	for ; failures > 1 && delay < o.RetryDelayMax; failures-- {
		delay *= 2
	}
	return min(delay, o.RetryDelayMax)
}

// Services are what both reconcilers need from outside.
type Services struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// APIReader reads past the cache: all that safety depends on.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Options   Options
	// Limiter is shared by all Sources.
	Limiter  *limiter.Limiter
	Progress *moverresult.Fetcher
}

// base is what both reconcilers have.
type base struct {
	Services
	shown *progressShown
}

func newBase(services Services) base {
	services.Options = services.Options.Defaults()
	return base{Services: services, shown: &progressShown{}}
}

// adopt marks a resource as ours before anything is done for it: the finalizer, and the uid it was accepted under. A
// copy that a backup tool makes of it has another uid, which is how it will be told apart.
func (b *base) adopt(ctx context.Context, object client.Object) error {
	patched := object.DeepCopyObject().(client.Object)
	changed := controllerutil.AddFinalizer(patched, v1alpha1.Finalizer)
	annotations := patched.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if _, there := annotations[v1alpha1.AnnotationIncarnation]; !there {
		annotations[v1alpha1.AnnotationIncarnation] = string(object.GetUID())
		patched.SetAnnotations(annotations)
		changed = true
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(object.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	if err := b.Client.Patch(ctx, patched, patch); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	object.SetFinalizers(patched.GetFinalizers())
	object.SetAnnotations(patched.GetAnnotations())
	object.SetResourceVersion(patched.GetResourceVersion())
	return nil
}

// release lets go of a resource whose children are gone.
func (b *base) release(ctx context.Context, object client.Object) error {
	patched := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(patched, v1alpha1.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(b.Client.Patch(ctx, patched, patch))
}

// privileged tells whether a namespace permits privileged movers.
func (b *base) privileged(ctx context.Context, namespace string) (bool, error) {
	object := &corev1.Namespace{}
	if err := b.APIReader.Get(ctx, client.ObjectKey{Name: namespace}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return object.Annotations[v1alpha1.AnnotationPrivilegedMovers] == "true", nil
}

// note records an event about a resource.
func (b *base) note(object client.Object, kind, reason, action, format string, arguments ...any) {
	b.Recorder.Eventf(object, nil, kind, reason, action, format, arguments...)
}
