// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"volferry.io/controller/api/v1alpha1"
	_ "volferry.io/controller/internal/metrics"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/internal/params"
	"volferry.io/controller/internal/schedule"
)

// Every example is what the controller accepts, field by field and parameter by parameter.
func TestExamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples/*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	sources, addresses := 0, map[string]bool{}
	var wanted []string
	for _, file := range files {
		name := filepath.Base(file)
		if name == "alerts.yaml" {
			continue
		}
		privileged := name == "privileged-namespace.yaml"
		for _, object := range manifest(t, filepath.Join("examples", name)) {
			switch object.GetKind() {
			case "Source":
				sources++
				wanted = append(wanted, checkSource(t, name, object, privileged))
			case "Destination":
				addresses[checkDestination(t, name, object)] = true
			case "PersistentVolumeClaim":
				convert[corev1.PersistentVolumeClaim](t, object)
			case "Namespace":
				convert[corev1.Namespace](t, object)
			case "Role":
				convert[rbacv1.Role](t, object)
			case "RoleBinding":
				convert[rbacv1.RoleBinding](t, object)
			default:
				t.Errorf("%s: %s is not checked here", name, object.GetKind())
			}
		}
	}
	if sources < 4 {
		t.Errorf("only %d Sources", sources)
	}
	for _, address := range wanted {
		if strings.HasPrefix(address, "vf-") && !addresses[address] {
			t.Errorf("no Destination has the address %s", address)
		}
	}
}

func checkSource(t *testing.T, file string, object *unstructured.Unstructured, privileged bool) string {
	t.Helper()
	source := convert[v1alpha1.Source](t, object)
	parsed, err := params.ParseSource(source.Spec.Parameters, params.Options{PrivilegedMovers: privileged})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := parsed.ReadyToSync(); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if _, err := params.ParseSource(source.Spec.Parameters, params.Options{}); privileged && err == nil {
		t.Errorf("%s needs no privileges", file)
	}
	trigger := source.Spec.Trigger
	if _, err := schedule.Parse(trigger.Schedule, trigger.TimeZone, time.Unix(0, 0)); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	return parsed.Address
}

// checkDestination answers with the name of the Destination's Service.
func checkDestination(t *testing.T, file string, object *unstructured.Unstructured) string {
	t.Helper()
	destination := convert[v1alpha1.Destination](t, object)
	if _, err := params.ParseDestination(destination.Spec.Parameters, params.Options{}); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	return names.Destination(destination.Namespace, destination.Name) + ".volferry-system.svc"
}

// An alert on a metric that does not exist would never fire.
func TestAlertsUseExistingMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil || len(rules.Groups) != 1 || len(rules.Groups[0].Rules) < 5 {
		t.Fatalf("%+v, %v", rules, err)
	}
	for _, rule := range rules.Groups[0].Rules {
		metricsExist(t, rule.Alert, rule.Expr)
	}
}

// A panel on one would stay empty.
func TestDashboardUsesExistingMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "grafana/volferry.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) < 5 {
		t.Fatalf("%+v, %v", board, err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			metricsExist(t, panel.Title, target.Expr)
		}
	}
}

// metricsExist checks that an expression uses metrics, and only those that the controller or the mover has.
func metricsExist(t *testing.T, what, expression string) {
	t.Helper()
	used := regexp.MustCompile(`volferry_\w+`).FindAllString(expression, -1)
	if len(used) == 0 {
		t.Errorf("%s uses no metric", what)
	}
	known := registered()
	for _, name := range used {
		if !known[strings.TrimSuffix(name, "_bucket")] && !moverMetrics(t)[name] {
			t.Errorf("%s uses %s, which does not exist", what, name)
		}
	}
}

// moverMetrics are those of the mover's contract.
func moverMetrics(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "../docs/mover.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, name := range regexp.MustCompile(`volferry_mover_\w+`).FindAllString(string(text), -1) {
		known[name] = true
	}
	return known
}

// registered are the names of our metrics, with or without samples.
func registered() map[string]bool {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		ctrlmetrics.Registry.(prometheus.Collector).Describe(descriptions)
		close(descriptions)
	}()
	known := map[string]bool{}
	name := regexp.MustCompile(`fqName: "(volferry_\w+)"`)
	for d := range descriptions {
		if m := name.FindStringSubmatch(d.String()); m != nil {
			known[m[1]] = true
		}
	}
	return known
}
