// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

const smallestSource = `
apiVersion: volferry.io/v1alpha1
kind: Source
metadata: {name: my-vol-mirror, namespace: NAMESPACE}
spec:
  source: my-pvc
  trigger: {schedule: "*/10 * * * * *"}
  replicationMethod: Rsync
  parameters: {address: dst.example.com, keySecret: my-vol-key}
`

const smallestDestination = `
apiVersion: volferry.io/v1alpha1
kind: Destination
metadata: {name: my-vol-mirror, namespace: NAMESPACE}
spec:
  replicationMethod: Rsync
  parameters: {capacity: 10Gi}
`

func (w *world) parse(text string) *unstructured.Unstructured {
	w.Helper()
	object := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAMESPACE", w.namespace)), &object.Object))
	return object
}

// applyStrictly creates an object as `kubectl create --validate=strict` does.
func (w *world) applyStrictly(text string) error {
	return w.client.Create(w.ctx, w.parse(text), &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

func TestA01SmallestExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{smallestSource, smallestDestination} {
		w.must(w.applyStrictly(text))
		stored := w.parse(text)
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(stored), stored))
		for name, want := range w.parse(text).Object["spec"].(map[string]any) {
			got := stored.Object["spec"].(map[string]any)[name]
			if nested, ok := want.(map[string]any); ok {
				for inner, value := range nested {
					if got.(map[string]any)[inner] != value {
						t.Errorf("spec.%s.%s became %v, was %v", name, inner, got.(map[string]any)[inner], value)
					}
				}
			} else if got != want {
				t.Errorf("spec.%s became %v, was %v", name, got, want)
			}
		}
	}
	const name = "my-vol-mirror"
	w.eventually(20*time.Second, "both to be accepted", func() bool {
		return reason(w.source(name).Status.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonAccepted &&
			reason(w.destination(name).Status.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonAccepted
	})
	w.eventually(20*time.Second, "the Source to be dormant", func() bool {
		s := w.source(name).Status
		return reason(s.Conditions, v1alpha1.ConditionDependenciesReady) == v1alpha1.ReasonSourcePVCNotFound && s.Retry == nil
	})
	// Status can be written through its own endpoint only.
	edit(w, name, func(s *v1alpha1.Source) {
		s.Status.MethodStatus = map[string]string{"forged": "yes"}
		s.Status.Conditions = nil
	})
	if got := w.source(name).Status; got.MethodStatus["forged"] != "" || len(got.Conditions) == 0 {
		t.Error("a write to the resource changed its status")
	}
}

func TestA03BadSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim("data", "1Mi", corev1.PersistentVolumeFilesystem)
	bad := func(name, schedule string) error {
		s := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		s.Spec = v1alpha1.SourceSpec{
			Source: "data", Trigger: v1alpha1.SourceTrigger{Schedule: schedule},
			Parameters: map[string]string{"address": "127.0.0.1", "keySecret": "none"},
		}
		return w.client.Create(w.ctx, s)
	}
	for _, schedule := range []string{"* * * *", "* * * * * * *", "@sometimes", "@every"} {
		if err := bad("four", schedule); !apierrors.IsInvalid(err) {
			t.Errorf("schedule %q: got %v, want a refusal", schedule, err)
		}
	}
	for i, schedule := range []string{"61 * * * *", "* * * * mumble", "@every 10ms", "TZ=UTC * * * * *"} {
		name := fmt.Sprintf("bad-%d", i)
		if err := bad(name, schedule); err != nil {
			if !apierrors.IsInvalid(err) {
				t.Fatal(err)
			}
			continue
		}
		w.eventually(10*time.Second, "InvalidSchedule for "+schedule, func() bool {
			return reason(w.source(name).Status.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonInvalidSchedule
		})
	}
	s := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "zone"}}
	s.Spec = v1alpha1.SourceSpec{Source: "data", Trigger: v1alpha1.SourceTrigger{Schedule: "* * * * *", TimeZone: "Mars/Base"}}
	s.Spec.Parameters = map[string]string{"address": "127.0.0.1", "keySecret": "none"}
	w.create(s)
	w.eventually(10*time.Second, "InvalidTimeZone", func() bool {
		return reason(w.source("zone").Status.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonInvalidTimeZone
	})
	w.never(2*time.Second, "a Job of a Source that was not accepted", func() bool { return w.jobs(w.namespace) > 0 })
	// It recovers by an edit.
	edit(w, "bad-0", func(s *v1alpha1.Source) { s.Spec.Trigger.Schedule = "1 * * * *" })
	w.eventually(10*time.Second, "acceptance after the edit", func() bool {
		s := w.source("bad-0").Status
		return reason(s.Conditions, v1alpha1.ConditionAccepted) == v1alpha1.ReasonAccepted && s.NextSyncTime != nil
	})
}

func (w *world) jobs(namespace string) int {
	list := &batchv1.JobList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(namespace)))
	return len(list.Items)
}

func TestA11ExternalMethodsAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim("data", "1Mi", corev1.PersistentVolumeFilesystem)
	spec := map[string]string{"anything": "goes"}
	w.create(
		&v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s"}, Spec: v1alpha1.SourceSpec{
			Source: "data", ReplicationMethod: "ceph.io/rbd-async", Parameters: spec,
			Trigger: v1alpha1.SourceTrigger{InitialSync: "Immediate", Schedule: "* * * * * *"},
		}},
		&v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "d"}, Spec: v1alpha1.DestinationSpec{
			ReplicationMethod: "ceph.io/rbd-async", Parameters: spec,
		}},
	)
	w.never(3*time.Second, "a trace on an external method's resource", func() bool {
		s, d := w.source("s"), w.destination("d")
		return len(s.Finalizers)+len(d.Finalizers)+len(s.Annotations)+len(d.Annotations) > 0 ||
			s.Status.Phase != "" || len(s.Status.Conditions) > 0 || s.Status.ObservedUID != "" ||
			d.Status.Phase != "" || len(d.Status.Conditions) > 0 || d.Status.ObservedUID != ""
	})
	w.must(w.client.Delete(w.ctx, w.source("s")))
	w.must(w.client.Delete(w.ctx, w.destination("d")))
	for _, object := range []client.Object{&v1alpha1.Source{}, &v1alpha1.Destination{}} {
		if n := w.count(object); n > 0 {
			t.Errorf("%d of %T are left: the deletion waits for somebody", n, object)
		}
	}
	events := &eventsv1.EventList{}
	w.must(w.client.List(w.ctx, events, client.InNamespace(w.namespace)))
	for _, event := range events.Items {
		if event.Regarding.Kind == "Source" || event.Regarding.Kind == "Destination" {
			t.Errorf("event %s about %s %s", event.Reason, event.Regarding.Kind, event.Regarding.Name)
		}
	}
	for _, child := range []client.ObjectKey{
		{Namespace: w.namespace, Name: names.Source(w.namespace, "s")}, {Namespace: vault, Name: names.Destination(w.namespace, "d")},
	} {
		for _, object := range []client.Object{&batchv1.Job{}, &corev1.PersistentVolumeClaim{}, &corev1.Service{}, &corev1.Secret{}} {
			if err := w.client.Get(w.ctx, child, object); !apierrors.IsNotFound(err) {
				t.Errorf("%T %s: %v", object, child, err)
			}
		}
	}
}

// count the resources of a kind in the test's namespace.
func (w *world) count(kind client.Object) int {
	w.Helper()
	switch kind.(type) {
	case *v1alpha1.Source:
		list := &v1alpha1.SourceList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)))
		return len(list.Items)
	default:
		list := &v1alpha1.DestinationList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)))
		return len(list.Items)
	}
}

func TestA13BadParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim("data", "1Mi", corev1.PersistentVolumeFilesystem)
	const secretLike = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tests := map[string]struct {
		kind, key, value, wantReason string
	}{
		"unknown":          {"Destination", "capcity", "1Gi", v1alpha1.ReasonUnknownParameter},
		"rate":             {"Source", "bandwidthLimit", "fast", v1alpha1.ReasonInvalidParameter},
		"copy":             {"Source", "copyMethod", "Teleport", v1alpha1.ReasonInvalidParameter},
		"json":             {"Destination", "moverResources", "{", v1alpha1.ReasonInvalidParameter},
		"root":             {"Source", "moverSecurityContext", `{"runAsUser":0}`, v1alpha1.ReasonInvalidParameter},
		"looks-like-a-key": {"Source", "streams", secretLike, v1alpha1.ReasonInvalidParameter},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, ctx: w.ctx, namespace: w.namespace, client: w.client}
			conditions := func() []metav1.Condition { return w.source(name).Status.Conditions }
			if test.kind == "Source" {
				s := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
				s.Spec = v1alpha1.SourceSpec{Source: "data", Trigger: v1alpha1.SourceTrigger{InitialSync: "Immediate"}}
				s.Spec.Parameters = map[string]string{"address": "127.0.0.1", "keySecret": "k", test.key: test.value}
				w.create(s)
			} else {
				d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
				d.Spec.Parameters = map[string]string{"capacity": "1Gi", test.key: test.value}
				w.create(d)
				conditions = func() []metav1.Condition { return w.destination(name).Status.Conditions }
			}
			w.eventually(10*time.Second, test.wantReason, func() bool {
				return reason(conditions(), v1alpha1.ConditionAccepted) == test.wantReason
			})
			text := conditionsText(conditions())
			if !strings.Contains(text, test.key) {
				t.Errorf("the conditions do not name %s:\n%s", test.key, text)
			}
			if strings.Contains(text, secretLike[:32]) {
				t.Errorf("the conditions show what looks like a key:\n%s", text)
			}
		})
	}
	w.never(time.Second, "a Job", func() bool { return w.jobs(w.namespace) > 0 })
	for name, test := range tests {
		if test.kind == "Destination" {
			if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, name)}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
				t.Errorf("Destination %s: a Job, or %v", name, err)
			}
		}
	}
}

func TestA14DestinationHasNoTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.applyStrictly(strings.ReplaceAll(smallestDestination, "spec:", "spec:\n  trigger: {onDemand: a}"))
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("got %v, want a refusal of an unknown field", err)
	}
	w.must(w.applyStrictly(smallestDestination))
}

func TestA16ImmutableFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.applyStrictly(smallestSource))
	w.must(w.applyStrictly(smallestDestination))
	const name = "my-vol-mirror"
	edits := map[string]client.Object{}
	s := w.source(name)
	s.Spec.Source = "other"
	edits["source"] = s
	s = w.source(name)
	s.Spec.ReplicationMethod = "ceph.io/rbd-async"
	edits["the method of a Source"] = s
	d := w.destination(name)
	d.Spec.ReplicationMethod = "ceph.io/rbd-async"
	edits["the method of a Destination"] = d
	for what, object := range edits {
		object.SetResourceVersion("")
		if err := w.client.Update(w.ctx, object); !apierrors.IsInvalid(err) {
			t.Errorf("%s could be edited: %v", what, err)
		}
	}
}
