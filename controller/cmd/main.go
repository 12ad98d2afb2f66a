// SPDX-License-Identifier: Apache-2.0

// The volferry controller: runs movers for Sources and Destinations.
package main

import (
	"fmt"
	"os"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"volferry.io/controller/internal/app"
)

func main() {
	options, err := app.ParseFlags(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "volferry-controller: error:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.Level(options.LogLevel)))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = app.Run(ctrl.SetupSignalHandler(), config, options, clock.RealClock{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "volferry-controller: error:", err)
		os.Exit(1)
	}
}
