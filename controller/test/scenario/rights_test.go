// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/app"
)

// A65: every test of this package runs the controller as its service account and fails if one request was forbidden, see
// world.finish. What it must not be able to do is tried here.
func TestA65LeastRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheme, err := app.Scheme()
	w.must(err)
	controller, err := client.New(cluster.plane.Controller(), client.Options{Scheme: scheme})
	w.must(err)
	w.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "private"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hook"}},
		w.secretReader("hook"),
	)
	w.claim("data", "1Mi", corev1.PersistentVolumeFilesystem)
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: w.namespace, Name: name} }
	if err := controller.Get(w.ctx, key("private"), &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading a tenant's secret: %v", err)
	}
	if err := controller.Get(w.ctx, key("hook"), &corev1.Secret{}); err != nil {
		t.Errorf("reading a secret it was given: %v", err)
	}
	if err := controller.List(w.ctx, &corev1.SecretList{}, client.InNamespace(w.namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("listing a tenant's secrets: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data"}}
	if err := controller.Delete(w.ctx, claim); err == nil {
		t.Error("a claim without our label could be deleted")
	}
	// A label that the user has set does not keep the controller from its annotations, and it cannot add the one that is missing.
	half := edit(w, "data", func(claim *corev1.PersistentVolumeClaim) {
		claim.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	})
	annotate := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationRebound+`":"1"}}}`))
	if err := controller.Patch(w.ctx, half, annotate); err != nil {
		t.Errorf("annotating a claim with half of our label: %v", err)
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelOwnerUID+`":"1"}}}`))
	if err := controller.Patch(w.ctx, half, label); err == nil {
		t.Error("a claim of a user's could be made ours")
	}
	if err := controller.DeleteAllOf(w.ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(w.namespace)); err == nil {
		t.Error("claims could be deleted as a collection")
	}
	set, err := kubernetes.NewForConfig(cluster.plane.Controller())
	w.must(err)
	err = set.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name("any").SubResource("exec").Do(w.ctx).Error()
	if !apierrors.IsForbidden(err) {
		t.Errorf("pods/exec: %v", err)
	}
	if err := controller.List(w.ctx, &corev1.NodeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing nodes: %v", err)
	}
	if err := controller.Create(w.ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "forged"}}); !apierrors.IsForbidden(err) {
		t.Errorf("creating a volume: %v", err)
	}
}
