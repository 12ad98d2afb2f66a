// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// fieldOwner of everything that is applied.
const fieldOwner = client.FieldOwner("volferry")

// apply brings a child into the state of the object by server-side apply, and reads the result back into it.
func apply(ctx context.Context, c client.Client, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	// Not ours: what the API server and other controllers fill in.
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	dropEmptyTimes(u.Object)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object)
}

// dropEmptyTimes removes the null creationTimestamps that Go's types write into every metadata.
func dropEmptyTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if time, there := v["creationTimestamp"]; there && time == nil {
			delete(v, "creationTimestamp")
		}
		for _, inner := range v {
			dropEmptyTimes(inner)
		}
	case []any:
		for _, inner := range v {
			dropEmptyTimes(inner)
		}
	}
}

// takeOver gives a child of an earlier resource of the same kind and name to the one that is there now: one that was deleted
// with its volume kept, or restored from a backup. It tells whether there was something to take over.
func takeOver(ctx context.Context, c client.Client, owner, object client.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(owner, c.Scheme())
	if err != nil {
		return false, err
	}
	labels := object.GetLabels()
	if labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || labels[v1alpha1.LabelOwnerUID] == string(owner.GetUID()) ||
		object.GetAnnotations()[v1alpha1.AnnotationOwner] != names.Owner(kind.Kind, owner) {
		return false, nil
	}
	before := object.DeepCopyObject().(client.Object)
	labels = maps.Clone(labels)
	labels[v1alpha1.LabelOwnerUID] = string(owner.GetUID())
	object.SetLabels(labels)
	err = c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return false, fmt.Errorf("take %T %s over: %w", object, object.GetName(), err)
	}
	return true, nil
}

// removal of children of one owner.
type removal struct {
	client client.Client
	reader client.Reader
	owner  client.Object
}

// gone deletes the object of that key if it is ours, and tells whether it is no more. What it holds is gone first: a Job
// stays until its pods are. An object without our labels is left alone and an error.
func (r removal) gone(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	if err := r.reader.Get(ctx, key, object); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	if !names.Deletable(object, r.owner) {
		if taken, err := takeOver(ctx, r.client, r.owner, object); taken || err != nil {
			return false, err
		}
		return false, fmt.Errorf("%T %s is not a child of %s: it lacks our labels; remove or rename it", object, key, r.owner.GetName())
	}
	// Only a Job has dependents. The garbage collector, which ends a deletion in the foreground, learns of new kinds such as
	// snapshots late.
	propagation := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if _, job := object.(*batchv1.Job); job {
		propagation = client.PropagationPolicy(metav1.DeletePropagationForeground)
	}
	err := r.client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}, propagation)
	return false, client.IgnoreNotFound(err)
}
