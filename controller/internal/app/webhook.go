// SPDX-License-Identifier: Apache-2.0

package app

import (
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/webhook"
)

// addWebhook serves the HTTPS trigger, unless its address is "0".
func addWebhook(mgr manager.Manager, options Options) error {
	if options.WebhookAddress == "0" && options.WebhookListener == nil {
		return nil
	}
	log := mgr.GetLogger().WithName("webhook")
	server := &webhook.Server{
		Address:  options.WebhookAddress,
		Listener: options.WebhookListener,
		Names:    []string{"volferry-webhook." + options.VaultNamespace + ".svc"},
		Handler: webhook.NewHandler(webhook.Options{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Count: metrics.WebhookRequest, Serves: options.Serves, Log: log,
		}),
		Log: log,
	}
	if folder := options.WebhookCertificates; folder != "" {
		server.CertFile, server.KeyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	}
	return mgr.Add(server)
}
