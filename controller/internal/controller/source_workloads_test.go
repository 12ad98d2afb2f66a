// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"volferry.io/controller/api/v1alpha1"
)

func TestBusyWorkload(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "ns", Name: "w", Generation: 2}
	scaled := func(replicas int32, observed int64, left int32) client.Object {
		return &appsv1.StatefulSet{
			ObjectMeta: named, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(replicas)},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: observed, Replicas: left},
		}
	}
	job := func(change func(*batchv1.Job)) client.Object {
		object := &batchv1.Job{ObjectMeta: named}
		change(object)
		return object
	}
	for name, test := range map[string]struct {
		kind   string
		object client.Object
		want   string // is part of the answer; empty: it does not matter any more
	}{
		"absent":               {"StatefulSet", nil, ""},
		"down":                 {"StatefulSet", scaled(0, 2, 0), ""},
		"up":                   {"StatefulSet", scaled(3, 2, 3), "3 replicas"},
		"going down":           {"StatefulSet", scaled(0, 2, 1), "still has 1"},
		"told, not heard yet":  {"StatefulSet", scaled(0, 1, 0), "being changed"},
		"deployment, default":  {"Deployment", &appsv1.Deployment{ObjectMeta: named}, "1 replicas"},
		"replica set":          {"ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: named, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 2}}, ""},
		"running job":          {"Job", job(func(j *batchv1.Job) { j.Status.Active = 1 }), "1 pods"},
		"new job":              {"Job", job(func(*batchv1.Job) {}), "not over"},
		"suspended job":        {"Job", job(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), ""},
		"suspended, not ended": {"Job", job(func(j *batchv1.Job) { j.Spec.Suspend, j.Status.Terminating = ptr.To(true), ptr.To[int32](1) }), "1 pods"},
		"completed job":        {"Job", job(func(j *batchv1.Job) { j.Status.CompletionTime = ptr.To(metav1.Now()) }), ""},
		"failed job": {"Job", job(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if test.object != nil {
				builder = builder.WithObjects(test.object)
			}
			source := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
			source.Spec.FinalSync = &v1alpha1.FinalSyncSpec{WaitForWorkloads: []v1alpha1.WorkloadReference{{Kind: test.kind, Name: "w"}}}
			run := &sourceRun{SourceReconciler: NewSourceReconciler(Services{APIReader: builder.Build()}), source: source}
			got, err := run.busyWorkload(t.Context())
			if err != nil || !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
