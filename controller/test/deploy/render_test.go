// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The tools that users render with, built from the module proxy by the go command, which keeps them in its cache.
const (
	kustomizeTool = "sigs.k8s.io/kustomize/kustomize/v5@v5.8.2"
	helmTool      = "helm.sh/helm/v4/cmd/helm@v4.3.2"
	root          = "../../../deploy"
)

// render runs a tool and reads the objects it prints, by kind/namespace/name.
func render(t *testing.T, tool string, arguments ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	if testing.Short() {
		t.Skip("the first build of the renderer takes minutes")
	}
	command := exec.Command("go", append([]string{"run", tool}, arguments...)...)
	var output, errorOutput bytes.Buffer
	command.Stdout, command.Stderr = &output, &errorOutput
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, errorOutput.String())
	}
	return objects(t, &output)
}

func objects(t *testing.T, text io.Reader) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for decoder := yaml.NewYAMLOrJSONDecoder(text, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
		if _, twice := found[key]; twice {
			t.Errorf("%s is rendered twice", key)
		}
		found[key] = object
	}
}

func kustomize(t *testing.T, folder string) map[string]*unstructured.Unstructured {
	t.Helper()
	return render(t, kustomizeTool, "build", filepath.Join(root, folder))
}

func helm(t *testing.T, namespace string, settings ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	arguments := []string{"template", "volferry", filepath.Join(root, "helm/volferry"), "--namespace", namespace}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	return render(t, helmTool, arguments...)
}

// Both ways of installing give the same objects. Helm makes the release's namespace itself.
func TestKustomizeAndHelmAgree(t *testing.T) {
	plain, chart := kustomize(t, "default"), helm(t, "volferry-system")
	delete(plain, "Namespace//volferry-system")
	for key, object := range plain {
		other, found := chart[key]
		if !found {
			t.Errorf("%s is not in the chart", key)
			continue
		}
		if annotations := other.GetAnnotations(); annotations["helm.sh/resource-policy"] != "" {
			delete(annotations, "helm.sh/resource-policy")
			other.SetAnnotations(annotations)
		}
		if !reflect.DeepEqual(object.Object, other.Object) {
			t.Errorf("%s differs:\nkustomize %v\nhelm      %v", key, object.Object, other.Object)
		}
	}
	for key := range chart {
		if _, found := plain[key]; !found {
			t.Errorf("%s is in the chart alone", key)
		}
	}
	if len(plain) < 15 {
		t.Errorf("only %d objects", len(plain))
	}
}

func arguments(t *testing.T, all map[string]*unstructured.Unstructured, namespace string) []string {
	t.Helper()
	deployment, found := all["Deployment/"+namespace+"/volferry-controller"]
	if !found {
		t.Fatal("no Deployment")
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers: %v, %v", containers, err)
	}
	list, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestChartWithAVaultOfItsOwn(t *testing.T) {
	all := helm(t, "replication", "vaultNamespace=vault", "webhook.tlsSecret=hook-tls", "maxConcurrentSyncs=0", "startJitter=1m",
		"retryDelay=1s", "retryDelayMax=1m", "logLevel=debug", "moverPullSecrets={pull}", "namespaces={a,b}", "metrics.serviceMonitor=true")
	for _, key := range []string{"Namespace//vault", "Role/vault/volferry-controller", "RoleBinding/vault/volferry-controller",
		"ServiceAccount/replication/volferry-controller", "ServiceMonitor/replication/volferry"} {
		if all[key] == nil {
			t.Errorf("no %s", key)
		}
	}
	for key, object := range all {
		text, err := object.MarshalJSON()
		if err != nil || strings.Contains(string(text), "volferry-system") {
			t.Errorf("%s still names the default namespace (%v)", key, err)
		}
	}
	policy, err := all["ValidatingAdmissionPolicy//volferry-controller-deletes"].MarshalJSON()
	if err != nil || !strings.Contains(string(policy), "system:serviceaccount:replication:volferry-controller") {
		t.Errorf("the policy is not about the controller: %s, %v", policy, err)
	}
	args := arguments(t, all, "replication")
	accepted(t, args)
	for _, want := range []string{"--vault-namespace=vault", "--webhook-certificates=/certificates", "--max-concurrent-syncs=0",
		"--start-jitter=1m", "--retry-delay=1s", "--retry-delay-max=1m", "--log-level=debug", "--mover-pull-secrets=pull", "--namespaces=a,b"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not among %v", want, args)
		}
	}
}

func TestChartWithLittle(t *testing.T) {
	all := helm(t, "small", "webhook.enabled=false", "metrics.enabled=false", "crds.install=false")
	for key := range all {
		if strings.HasPrefix(key, "Service/") || strings.HasPrefix(key, "CustomResourceDefinition/") || strings.HasPrefix(key, "Namespace/") {
			t.Errorf("%s is rendered", key)
		}
	}
	args := arguments(t, all, "small")
	accepted(t, args)
	if !slices.Contains(args, "--webhook-address=0") || !slices.Contains(args, "--metrics-address=0") {
		t.Errorf("arguments %v", args)
	}
}

func TestOverlay(t *testing.T) {
	all := kustomize(t, "examples/overlay")
	args := arguments(t, all, "volferry-system")
	accepted(t, args)
	text, err := all["Deployment/volferry-system/volferry-controller"].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"images.example.com/volferry/controller:0.1.0", "images.example.com/volferry/mover:0.1.0", "volferry-webhook-tls"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in the Deployment", want)
		}
	}
}
