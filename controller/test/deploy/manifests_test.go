// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"volferry.io/controller/internal/app"
)

// manifest reads the objects of a file in deploy/.
func manifest(t *testing.T, path string) map[string]*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return objects(t, file)
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	target := new(T)
	if object == nil {
		t.Fatal("the object is missing")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, target, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return target
}

// accepted checks that the controller understands its command line.
func accepted(t *testing.T, arguments []string) {
	t.Helper()
	full := append([]string{"--mover-image=m", "--vault-namespace=v"}, arguments...)
	if _, err := app.ParseFlags(full, io.Discard); err != nil {
		t.Errorf("the controller refuses %v: %v", arguments, err)
	}
}

func TestDeploymentIsRestricted(t *testing.T) {
	deployment := convert[appsv1.Deployment](t, manifest(t, "manager/deployment.yaml")["Deployment/volferry-system/volferry-controller"])
	pod := deployment.Spec.Template.Spec
	accepted(t, pod.Containers[0].Args)
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("pod: %+v", pod.SecurityContext)
	}
	for _, container := range pod.Containers {
		c := container.SecurityContext
		if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || len(c.Capabilities.Add) > 0 || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("container: %+v", c)
		}
		if container.LivenessProbe == nil || container.ReadinessProbe == nil || container.Resources.Limits.Memory().IsZero() {
			t.Error("probes and a memory limit are needed")
		}
		if registry, _, _ := strings.Cut(container.Image, "/"); strings.Contains(registry, ".") || strings.HasSuffix(container.Image, ":latest") {
			t.Errorf("image %s", container.Image)
		}
	}
}

// What the controller must never be able to do, whatever is added to the markers (A65).
func TestA65LeastPrivilege(t *testing.T) {
	roles := manifest(t, "rbac/role.yaml")
	cluster := convert[rbacv1.ClusterRole](t, roles["ClusterRole//volferry-controller"])
	vault := convert[rbacv1.Role](t, roles["Role/volferry-system/volferry-controller"])
	for _, rule := range append(slices.Clone(cluster.Rules), vault.Rules...) {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(list, "*") {
				t.Errorf("wildcard in %v", rule)
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("%s in %v", verb, rule)
			}
		}
		for _, resource := range []string{"nodes", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token", "roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
			if slices.Contains(rule.Resources, resource) {
				t.Errorf("%s in %v", resource, rule)
			}
		}
	}
	for _, rule := range cluster.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			t.Errorf("secrets in every namespace: %v", rule)
		}
		for resource, verbs := range map[string][]string{
			"persistentvolumes": {"create", "delete", "update"}, "pods": {"create", "delete", "patch", "update"},
			"namespaces": {"create", "delete", "patch", "update"}, "sources": {"create", "delete", "update"}, "destinations": {"create", "delete", "update"},
		} {
			for _, verb := range verbs {
				if slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s of %s: %v", verb, resource, rule)
				}
			}
		}
	}
}

func TestUserRoles(t *testing.T) {
	roles := manifest(t, "rbac/user_roles.yaml")
	edit := convert[rbacv1.ClusterRole](t, roles["ClusterRole//volferry-edit"])
	view := convert[rbacv1.ClusterRole](t, roles["ClusterRole//volferry-view"])
	for _, rule := range append(edit.Rules, view.Rules...) {
		for _, resource := range rule.Resources {
			base, sub, _ := strings.Cut(resource, "/")
			if base != "sources" && base != "destinations" {
				t.Errorf("users may touch %s", resource)
			}
			if sub != "" && slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" }) {
				t.Errorf("users may write %s", resource)
			}
		}
	}
	if view.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" || edit.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "true" {
		t.Error("the roles are not aggregated")
	}
}
