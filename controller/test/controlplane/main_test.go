// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
)

var plane *Plane

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: starts a control plane, which is left out with -short")
		os.Exit(0)
	}
	var err error
	if os.Getenv(victimVariable) != "" {
		beVictim()
	}
	if plane, err = Start(context.Background(), Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
