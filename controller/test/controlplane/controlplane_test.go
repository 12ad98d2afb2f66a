// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func adminClient(t *testing.T) client.Client {
	t.Helper()
	c, err := plane.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) { return done(ctx), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// A Service's address must be one that a program here can listen on.
func TestClusterIPIsOurOwnLoopbackAddress(t *testing.T) {
	c := adminClient(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "listen"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8000}}},
	}
	if err := c.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || !netip.MustParsePrefix(plane.Loopback.ServiceRange).Contains(address) {
		t.Fatalf("ClusterIP %q, want one of %s", service.Spec.ClusterIP, plane.Loopback.ServiceRange)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(service.Spec.ClusterIP, "8000"))
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}

// Deleting a namespace removes what is in it only with the real namespace controller, and a secret that belongs to a
// deleted owner only with the real garbage collector.
func TestControllersAct(t *testing.T) {
	c := adminClient(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "to-be-deleted"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "owner"}}
	if err := c.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace.Name, Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	if err := c.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	gone := func(object client.Object) func(context.Context) bool {
		return func(ctx context.Context) bool {
			return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))
		}
	}
	eventually(t, "the owned secret is collected", gone(owned))
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", gone(namespace))
}

// The controller's identity, impersonated or by a token, has the rights that were given to it and no others.
func TestIdentities(t *testing.T) {
	c := adminClient(t)
	if err := plane.Apply(t.Context(), "testdata/identity.yaml"); err != nil {
		t.Fatal(err)
	}
	token, err := plane.Token(t.Context(), ControllerNamespace, ControllerServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "private"},
	}); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"impersonated": plane.Controller(), "token": token} {
		t.Run(name, func(t *testing.T) {
			own := clientOf(t, config)
			eventually(t, "the role is in force", func(ctx context.Context) bool {
				return own.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(ControllerNamespace)) == nil
			})
			err := own.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "private"}, &corev1.Secret{})
			if !apierrors.IsForbidden(err) {
				t.Fatalf("reading a foreign secret: %v, want Forbidden", err)
			}
		})
	}
}

func TestSnapshotDefinitionsAreServed(t *testing.T) {
	if err := plane.InstallSnapshotCRDs(); err != nil {
		t.Fatal(err)
	}
	mapping, err := adminClient(t).RESTMapper().RESTMapping(
		schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}, "v1")
	if err != nil || mapping.Resource.Resource != "volumesnapshots" {
		t.Fatalf("%v, %v", mapping, err)
	}
}
