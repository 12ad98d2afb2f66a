// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/test/controlplane"
)

// installed is a real control plane to which deploy/ was applied.
type installed struct {
	*testing.T
	plane      *controlplane.Plane
	scheme     *runtime.Scheme
	admin      client.Client
	controller client.Client
}

func (i *installed) client(config *rest.Config) client.Client {
	i.Helper()
	c, err := client.New(config, client.Options{Scheme: i.scheme})
	if err != nil {
		i.Fatal(err)
	}
	return c
}

func install(t *testing.T) *installed {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane, which is left out with -short")
	}
	ctx := context.Background()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := plane.InstallSnapshotCRDs(); err != nil {
		t.Fatal(err)
	}
	if err := plane.InstallCRDs(root + "/crd/generated"); err != nil {
		t.Fatal(err)
	}
	// In the order of a kustomization: namespaces come first.
	if err := plane.Apply(ctx, root+"/manager/namespace.yaml", root+"/rbac", root+"/admission", root+"/manager"); err != nil {
		t.Fatal(err)
	}
	i := &installed{T: t, plane: plane, scheme: controlplane.Scheme()}
	if err := v1alpha1.AddToScheme(i.scheme); err != nil {
		t.Fatal(err)
	}
	i.admin, i.controller = i.client(plane.Admin()), i.client(plane.Controller())
	return i
}

func (i *installed) create(object client.Object) client.Object {
	i.Helper()
	if err := i.admin.Create(context.Background(), object); err != nil {
		i.Fatal(err)
	}
	return object
}

func (i *installed) namespace(name string, labels map[string]string) string {
	i.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	return name
}

var ours = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelOwnerUID: "uid"}

func claim(namespace, name string, labels map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func snapshot(namespace, name string, labels map[string]string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("c")}},
	}
}

func TestInstalled(t *testing.T) {
	i := install(t)
	t.Run("A65 deletes", func(t *testing.T) { i.deletes(t) })
	t.Run("A65 labels", func(t *testing.T) { i.labels(t) })
	t.Run("A65 rights", func(t *testing.T) { i.rights(t) })
	t.Run("users", func(t *testing.T) { i.users(t) })
	t.Run("restricted", func(t *testing.T) { i.restricted(t) })
	t.Run("examples", func(t *testing.T) { i.examples(t) })
}

// deletes: the controller deletes what bears its label, and nothing else.
func (i *installed) deletes(t *testing.T) {
	ctx, namespace := context.Background(), i.namespace("deletes", nil)
	// A policy takes effect a moment after it was made.
	deadline := time.Now().Add(30 * time.Second)
	for {
		victim := i.create(claim(namespace, "probe", nil))
		err := i.controller.Delete(ctx, victim)
		if err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the controller may delete a user's claim")
		}
		time.Sleep(200 * time.Millisecond)
		_ = client.IgnoreNotFound(i.admin.Delete(ctx, victim))
	}
	other := map[string]string{v1alpha1.LabelManagedBy: "somebody", v1alpha1.LabelOwnerUID: "uid"}
	tests := map[string]struct {
		object client.Object
		denied bool
	}{
		"a user's claim":    {claim(namespace, "users", nil), true},
		"somebody's claim":  {claim(namespace, "somebodys", other), true},
		"half our label":    {claim(namespace, "half", map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}), true},
		"our claim":         {claim(namespace, "ours", ours), false},
		"a user's snapshot": {snapshot(namespace, "users", nil), true},
		"our snapshot":      {snapshot(namespace, "ours", ours), false},
	}
	for name, tc := range tests {
		err := i.controller.Delete(ctx, i.create(tc.object))
		if denied := err != nil && strings.Contains(err.Error(), "only what it made itself"); denied != tc.denied || !denied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The policy is about the controller alone.
	if err := i.admin.Delete(ctx, claim(namespace, "users", nil)); err != nil {
		t.Errorf("a user's delete: %v", err)
	}
}

// labels: the way around, to label first and delete then, is closed.
func (i *installed) labels(t *testing.T) {
	ctx, namespace := context.Background(), i.namespace("labels", nil)
	i.create(claim(namespace, "users", nil))
	i.create(claim(namespace, "ours", ours))
	patch := func(name, body string) error {
		target := claim(namespace, name, nil)
		return i.controller.Patch(ctx, target, client.RawPatch("application/merge-patch+json", []byte(body)))
	}
	if err := patch("users", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"volferry"}}}`); err == nil || !strings.Contains(err.Error(), "may not label") {
		t.Errorf("our label on a user's claim: %v", err)
	}
	if err := patch("users", `{"metadata":{"labels":{"volferry.io/owner-uid":"uid"}}}`); err == nil {
		t.Error("our owner on a user's claim")
	}
	if err := patch("users", `{"metadata":{"annotations":{"volferry.io/touched":"1"}}}`); err != nil {
		t.Errorf("an annotation on a user's claim: %v", err)
	}
	if err := patch("ours", `{"metadata":{"labels":{"volferry.io/owner-uid":"next"}}}`); err != nil {
		t.Errorf("another owner on our claim: %v", err)
	}
}

// rights: what the roles give, as the API server understands them.
func (i *installed) rights(t *testing.T) {
	ctx := context.Background()
	i.namespace("tenant", nil)
	i.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "key"}})
	secret := &corev1.Secret{}
	get := func() error { return i.controller.Get(ctx, client.ObjectKey{Namespace: "tenant", Name: "key"}, secret) }
	if err := get(); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant's Secret: %v", err)
	}
	allowed := func(verb, group, resource, subresource, namespace string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + controlplane.ControllerNamespace + ":" + controlplane.ControllerServiceAccount,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + controlplane.ControllerNamespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace,
			},
		}}
		i.create(review)
		return review.Status.Allowed
	}
	tests := []struct {
		verb, group, resource, subresource, namespace string
		want                                          bool
	}{
		{"create", "", "pods", "exec", "tenant", false},
		{"create", "", "pods", "exec", controlplane.ControllerNamespace, false},
		{"list", "", "secrets", "", "", false},
		{"get", "", "secrets", "", "tenant", false},
		{"get", "", "secrets", "", controlplane.ControllerNamespace, true},
		{"list", "", "nodes", "", "", false},
		{"delete", "", "persistentvolumes", "", "", false},
		{"create", "", "persistentvolumes", "", "", false},
		{"patch", "", "persistentvolumes", "", "", true},
		{"create", "batch", "jobs", "", "tenant", true},
		{"update", "volferry.io", "sources", "", "tenant", false},
		{"patch", "volferry.io", "sources", "", "tenant", true},
		{"update", "volferry.io", "sources", "status", "tenant", true},
		{"delete", "volferry.io", "destinations", "", "tenant", false},
		{"bind", "rbac.authorization.k8s.io", "clusterroles", "", "", false},
	}
	for _, tc := range tests {
		if got := allowed(tc.verb, tc.group, tc.resource, tc.subresource, tc.namespace); got != tc.want {
			t.Errorf("%+v: allowed %v", tc, got)
		}
	}
}

// users: the aggregated roles reach those who have view or edit in their namespace.
func (i *installed) users(t *testing.T) {
	ctx, namespace := context.Background(), i.namespace("users", nil)
	for _, role := range []string{"view", "edit"} {
		i.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role + "-user"}},
		})
	}
	editor, viewer := i.client(i.plane.User("edit-user")), i.client(i.plane.User("view-user"))
	source := func(name string) *v1alpha1.Source {
		return &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.SourceSpec{Source: "claim"}}
	}
	deadline := time.Now().Add(30 * time.Second) // the aggregation is a controller's work
	for {
		err := editor.Create(ctx, source("one"))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a user with edit: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	status := source("one")
	status.Status.Phase = v1alpha1.SourceIdle
	if err := editor.Status().Patch(ctx, status, client.MergeFrom(source("one"))); !apierrors.IsForbidden(err) {
		t.Errorf("a user writes the status: %v", err)
	}
	if err := viewer.List(ctx, &v1alpha1.SourceList{}, client.InNamespace(namespace)); err != nil {
		t.Errorf("a user with view: %v", err)
	}
	if err := viewer.Create(ctx, source("two")); !apierrors.IsForbidden(err) {
		t.Errorf("a user with view creates: %v", err)
	}
}

// restricted: the controller's own pod is admitted where the restricted standard is enforced.
func (i *installed) restricted(t *testing.T) {
	ctx := context.Background()
	namespace := i.namespace("restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	i.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: controlplane.ControllerServiceAccount}})
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: controlplane.ControllerNamespace, Name: "volferry-controller"}
	if err := i.admin.Get(ctx, key, deployment); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controller"}, Spec: deployment.Spec.Template.Spec}
	if err := i.admin.Create(ctx, pod, client.DryRunAll); err != nil {
		t.Errorf("the controller's pod: %v", err)
	}
	// That the standard is enforced at all:
	pod.Spec.SecurityContext.RunAsNonRoot = ptr.To(false)
	pod.ResourceVersion = ""
	if err := i.admin.Create(ctx, pod, client.DryRunAll); err == nil {
		t.Error("a pod as root was admitted")
	}
}

// examples: the API server takes each file as it is.
func (i *installed) examples(t *testing.T) {
	for _, file := range []string{"namespaces", "secret-reader", "filesystem-pair", "block-pair", "schedule-and-webhook", "privileged-namespace"} {
		if err := i.plane.Apply(context.Background(), root+"/examples/"+file+".yaml"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "standby", Name: "replication-key"}}
	i.create(secret)
	i.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "standby", Name: "other"}})
	if err := i.controller.Get(context.Background(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Errorf("the key that the example opens: %v", err)
	}
	other := &corev1.Secret{}
	if err := i.controller.Get(context.Background(), client.ObjectKey{Namespace: "standby", Name: "other"}, other); !apierrors.IsForbidden(err) {
		t.Errorf("a Secret that it does not open: %v", err)
	}
}
