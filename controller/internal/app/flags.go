// SPDX-License-Identifier: Apache-2.0

// Package app puts the controller together: flags, caches, reconcilers, the webhook, health and metrics.
package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"volferry.io/controller/internal/controller"
)

// Options of the controller, from its command line.
type Options struct {
	controller.Options
	// MaxConcurrentSyncs bounds the Sources whose movers run at once; 0: no bound.
	MaxConcurrentSyncs int
	// Workers of each reconciler.
	Workers int
	// Addresses to serve on; "0" turns one off.
	MetricsAddress, HealthAddress, WebhookAddress string
	// WebhookListener takes the place of WebhookAddress where it is set.
	WebhookListener net.Listener
	// WebhookCertificates is a folder with tls.crt and tls.key; empty: a certificate of its own.
	WebhookCertificates string
	LeaderElection      bool
	LogLevel            zapcore.Level
}

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ParseFlags reads the command line. Help and usage go to output.
func ParseFlags(arguments []string, output io.Writer) (Options, error) {
	var o Options
	var pullSecrets, level, namespaces string
	flags := flag.NewFlagSet("volferry-controller", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.VaultNamespace, "vault-namespace", ownNamespace(), "namespace of staging volumes and receive movers; default: the controller's own")
	flags.StringVar(&o.MoverImage, "mover-image", os.Getenv("VOLFERRY_MOVER_IMAGE"), "image of the mover; default: $VOLFERRY_MOVER_IMAGE")
	flags.StringVar(&pullSecrets, "mover-pull-secrets", "", "names of the secrets to pull that image with, separated by commas; they must exist where movers run")
	flags.StringVar(&namespaces, "namespaces", "", "namespaces to serve, separated by commas; default: all")
	flags.IntVar(&o.MaxConcurrentSyncs, "max-concurrent-syncs", 10, "how many Sources sync at once; 0: no bound")
	flags.DurationVar(&o.StartJitter, "start-jitter", 5*time.Second, "most by which a scheduled start is put off, and never more than a tenth of the interval")
	flags.DurationVar(&o.RetryDelay, "retry-delay", 10*time.Second, "pause after a first failure; it doubles with each further one")
	flags.DurationVar(&o.RetryDelayMax, "retry-delay-max", 10*time.Minute, "longest pause after a failure")
	flags.DurationVar(&o.FenceSettle, "fence-settle", 5*time.Second, "how long a volume that was taken from a claim is watched for a pod that was just starting")
	flags.IntVar(&o.Workers, "workers", 8, "reconciles of each kind that run at once")
	flags.StringVar(&o.MetricsAddress, "metrics-address", ":8080", "address of /metrics; 0: none")
	flags.StringVar(&o.HealthAddress, "health-address", ":8081", "address of /healthz and /readyz; 0: none")
	flags.StringVar(&o.WebhookAddress, "webhook-address", ":8443", "address of the HTTPS trigger; 0: none")
	flags.StringVar(&o.WebhookCertificates, "webhook-certificates", "", "folder with tls.crt and tls.key of the HTTPS trigger; without one it makes a certificate of its own")
	flags.BoolVar(&o.LeaderElection, "leader-election", true, "let one of several replicas act at a time")
	flags.StringVar(&level, "log-level", "info", "error, warn, info or debug")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not understood; options begin with --, see --help", flags.Arg(0))
	}
	if pullSecrets != "" {
		o.PullSecrets = strings.Split(pullSecrets, ",")
	}
	if namespaces != "" {
		o.Namespaces = strings.Split(namespaces, ",")
	}
	if err := o.LogLevel.Set(level); err != nil {
		return o, fmt.Errorf("--log-level %q: use error, warn, info or debug", level)
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.VaultNamespace == "":
		return errors.New("--vault-namespace is needed outside of a cluster: the namespace of staging volumes")
	case o.MoverImage == "":
		return errors.New("--mover-image is needed: the image that holds the volferry program")
	case o.MaxConcurrentSyncs < 0, o.Workers < 1:
		return errors.New("--max-concurrent-syncs must not be negative, and --workers at least 1")
	case o.FenceSettle < 0:
		return errors.New("--fence-settle must not be negative")
	case o.StartJitter < 0, o.RetryDelay <= 0, o.RetryDelayMax < o.RetryDelay:
		return errors.New("--start-jitter must not be negative, --retry-delay must be positive and at most --retry-delay-max")
	}
	return nil
}

// ownNamespace is where the controller's pod runs; empty outside of a cluster.
func ownNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
