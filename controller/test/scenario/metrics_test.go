// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"regexp"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metric reads a gauge or counter of a resource of this world out of the controller's registry.
func (w *world) metric(family, name string) (value float64, found bool) {
	w.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	w.must(err)
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["namespace"] != w.namespace || labels["name"] != name || labels["role"] != "source" {
				continue
			}
			if m.GetGauge() != nil {
				return m.GetGauge().GetValue(), true
			}
			return m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

var tokenPattern = regexp.MustCompile(`token=([0-9a-f]{12})`)

// tokenIn finds the token that a refusal printed.
func tokenIn(text string) string {
	found := tokenPattern.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}
