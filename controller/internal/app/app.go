// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/controller"
	"volferry.io/controller/internal/limiter"
	"volferry.io/controller/internal/moverresult"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=volferry-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update;patch,namespace=volferry-system

// Scheme holds every type the controller handles.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Run the controller until the context ends. The clock decides about schedules, retries and timestamps.
func Run(ctx context.Context, restConfig *rest.Config, options Options, clock clock.PassiveClock) error {
	mgr, err := New(restConfig, options, clock)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// New puts a manager together that Start can run.
func New(restConfig *rest.Config, options Options, clock clock.PassiveClock) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(restConfig, manager.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(options),
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.HealthAddress,
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "controller.volferry.io",
		LeaderElectionNamespace:       options.VaultNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(20 * time.Second),
		// One process may run several, each for namespaces of its own.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("set the manager up: %w", err)
	}
	if err := addReconcilers(mgr, options, clock); err != nil {
		return nil, err
	}
	if err := addWebhook(mgr, options); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}

func addReconcilers(mgr manager.Manager, options Options, clock clock.PassiveClock) error {
	limit := limiter.New(options.MaxConcurrentSyncs)
	if err := mgr.Add(limit); err != nil {
		return err
	}
	services := controller.Services{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorder("volferry"),
		Clock:     clock,
		Options:   options.Options,
		Limiter:   limit,
		Progress:  moverresult.NewFetcher(moverresult.MoverPort),
	}
	if err := controller.NewSourceReconciler(services).SetupWithManager(mgr, options.Workers); err != nil {
		return fmt.Errorf("set the Source reconciler up: %w", err)
	}
	if err := controller.NewDestinationReconciler(services).SetupWithManager(mgr, options.Workers); err != nil {
		return fmt.Errorf("set the Destination reconciler up: %w", err)
	}
	return nil
}

// cacheOptions keep in memory only what concerns us: of pods and Jobs those of our own, of Services those in the vault.
// Claims are all kept, since any may be a Source's.
func cacheOptions(options Options) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	inVault := cache.ByObject{Namespaces: map[string]cache.Config{options.VaultNamespace: {LabelSelector: ours.Label}}}
	cached := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&batchv1.Job{}:    ours,
		&corev1.Pod{}:     ours,
		&corev1.Service{}: inVault,
	}}
	if len(options.Namespaces) > 0 {
		cached.DefaultNamespaces = map[string]cache.Config{options.VaultNamespace: {}}
		for _, namespace := range options.Namespaces {
			cached.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return cached
}

// uncached kinds are read rarely, or must not be held in memory.
func uncached() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.PersistentVolume{}, &corev1.Namespace{}, &snapshotv1.VolumeSnapshot{}}
}
