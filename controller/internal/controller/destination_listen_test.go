// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/params"
)

// The listener must know the number and the attempt of what it has, or it takes a plain retry for a source that was rolled
// back.
func TestListenerKnowsWhatItHas(t *testing.T) {
	d := &v1alpha1.Destination{}
	d.Status.Lineage = &v1alpha1.DestinationLineage{Lineage: v1alpha1.Lineage{Seq: 7}, SourceVolumeID: "volume"}
	d.Status.LastReceived = &v1alpha1.Received{Seq: 7, AttemptID: "try-7", JobUID: "job"}
	reconciler := &DestinationReconciler{base: newBase(Services{})}
	run := &destinationRun{DestinationReconciler: reconciler, destination: d, params: &params.DestinationParams{}}
	got := map[string]string{}
	for _, variable := range run.jobInput().Env {
		got[variable.Name] = variable.Value
	}
	want := map[string]string{"VOLFERRY_SEQ": "7", "VOLFERRY_ATTEMPT": "try-7", "VOLFERRY_SOURCE_VOLUME_ID": "volume"}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}
