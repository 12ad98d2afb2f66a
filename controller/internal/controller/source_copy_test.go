// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"volferry.io/controller/internal/params"
)

func TestCopySize(t *testing.T) {
	tests := map[string]struct {
		requested, actual string
		capacity          *resource.Quantity
		want              string
	}{
		"the claim got what it asked for": {requested: "1Gi", actual: "1Gi", want: "1Gi"},
		"the claim got more":              {requested: "1Gi", actual: "4Gi", want: "4Gi"},
		"an expansion is not done yet":    {requested: "4Gi", actual: "1Gi", want: "4Gi"},
		"the user's own":                  {requested: "1Gi", actual: "1Gi", capacity: ptr.To(resource.MustParse("9Gi")), want: "9Gi"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.requested)}
			claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.actual)}
			run := &sourceRun{claim: claim, params: &params.SourceParams{Common: params.Common{Capacity: test.capacity}}}
			if got := run.copySize(); got.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("got %s, want %s", &got, test.want)
			}
		})
	}
}
