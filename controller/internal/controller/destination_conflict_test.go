// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestMisfit(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: "fast",
	}}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaimSpec)
		want   string // is part of the answer; empty: it fits
	}{
		"fits": {func(*corev1.PersistentVolumeClaimSpec) {}, ""},
		"smaller": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		}, ""},
		"larger": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		}, "3Gi"},
		"block":         {func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "volumeMode"},
		"files, stated": {func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem) }, ""},
		"other class":   {func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("slow") }, "class"},
		"no class":      {func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = nil }, "class"},
		"more access": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = append(s.AccessModes, corev1.ReadWriteMany)
		}, "ReadWriteMany"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: ptr.To("fast"),
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
			}}
			test.change(&claim.Spec)
			if got := misfit(claim, pv); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
