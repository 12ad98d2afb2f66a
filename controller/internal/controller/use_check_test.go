// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func podWith(name string, phase corev1.PodPhase, volume corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{volume}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

func TestInUse(t *testing.T) {
	ephemeral := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	ending := podWith("ending", corev1.PodRunning, claimVolume("data"))
	ending.DeletionTimestamp, ending.Finalizers = ptr.To(metav1.Now()), []string{"example.com/hold"}
	elsewhere := podWith("elsewhere", corev1.PodRunning, claimVolume("data"))
	elsewhere.Namespace = "other"
	attachment := func(pv string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		claim   string
		want    string // is part of the answer; empty: nobody uses it
	}{
		"nobody":              {claim: "data"},
		"running pod":         {[]client.Object{podWith("db-0", corev1.PodRunning, claimVolume("data"))}, "data", "pod db-0"},
		"pending pod":         {[]client.Object{podWith("db-0", corev1.PodPending, claimVolume("data"))}, "data", "pod db-0"},
		"pod being deleted":   {[]client.Object{ending}, "data", "pod ending"},
		"ephemeral volume":    {[]client.Object{podWith("db-0", corev1.PodRunning, ephemeral)}, "db-0-v", "pod db-0"},
		"finished pod":        {[]client.Object{podWith("db-0", corev1.PodSucceeded, claimVolume("data"))}, "data", ""},
		"other claim":         {[]client.Object{podWith("db-0", corev1.PodRunning, claimVolume("other"))}, "data", ""},
		"other namespace":     {[]client.Object{elsewhere}, "data", ""},
		"attached":            {[]client.Object{attachment("pv")}, "data", "node n1"},
		"another is attached": {[]client.Object{attachment("pv2")}, "data", ""},
		"finished, attached":  {[]client.Object{podWith("db-0", corev1.PodFailed, claimVolume("data")), attachment("pv")}, "data", "node n1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBase(Services{APIReader: fake.NewClientBuilder().WithObjects(test.objects...).Build()})
			got := b.inUse(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}, "ns", test.claim)
			if !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What cannot be read counts as in use.
func TestInUseWhereItCannotBeRead(t *testing.T) {
	for _, kind := range []client.ObjectList{&corev1.PodList{}, &storagev1.VolumeAttachmentList{}} {
		reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", kind) {
					return errors.New("the API server is away")
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
		b := newBase(Services{APIReader: reader})
		if got := b.inUse(t.Context(), &corev1.PersistentVolume{}, "ns", "data"); !strings.Contains(got, "away") {
			t.Errorf("%T: got %q", kind, got)
		}
	}
}
