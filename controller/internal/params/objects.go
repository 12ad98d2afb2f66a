// SPDX-License-Identifier: Apache-2.0

package params

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// decode reads a JSON value strictly: unknown and repeated fields are errors, as is anything after the value.
func decode(key, value string, target any) *Error {
	strict, err := kjson.UnmarshalStrict([]byte(value), target)
	if err != nil {
		return invalid(key, "is not the JSON that belongs here: %v", err)
	}
	if len(strict) > 0 {
		return invalid(key, "is not the JSON that belongs here: %v", strict[0])
	}
	return nil
}

func parsePodLabels(key, value string) (map[string]string, *Error) {
	labels, err := parseStringMap(key, value)
	if err != nil {
		return nil, err
	}
	for name, content := range labels {
		if reservedLabel(name) {
			return nil, invalid(key, "the label %s is not the user's to set", quote(name))
		}
		if len(validation.IsValidLabelValue(content)) > 0 {
			return nil, invalid(key, "label %s: %s is not a label's value", quote(name), quote(content))
		}
	}
	return labels, nil
}

// reservedLabel names the labels by which the controller, the Job controller and Services find pods.
func reservedLabel(name string) bool {
	prefix, _, qualified := strings.Cut(name, "/")
	if !qualified {
		return name == "job-name" || name == "controller-uid"
	}
	for _, domain := range []string{"volferry.io", "kubernetes.io", "k8s.io"} {
		if prefix == domain || strings.HasSuffix(prefix, "."+domain) {
			return true
		}
	}
	return false
}

func parseServiceAnnotations(key, value string) (map[string]string, *Error) {
	annotations, err := parseStringMap(key, value)
	for name := range annotations {
		if strings.HasPrefix(name, "volferry.io/") {
			return nil, invalid(key, "the annotation %s is not the user's to set", quote(name))
		}
	}
	return annotations, err
}

// parseStringMap reads a JSON object of strings whose names are names of labels or annotations.
func parseStringMap(key, value string) (map[string]string, *Error) {
	var m map[string]string
	if err := decode(key, value, &m); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(m) {
		if len(validation.IsQualifiedName(strings.ToLower(name))) > 0 {
			return nil, invalid(key, "%s is not the name of a label or annotation", quote(name))
		}
	}
	return m, nil
}

func setMoverResources(c *Common, key, value string) *Error {
	var resources corev1.ResourceRequirements
	if err := decode(key, value, &resources); err != nil {
		return err
	}
	if len(resources.Claims) > 0 {
		return invalid(key, "claims are not offered")
	}
	for _, list := range []corev1.ResourceList{resources.Limits, resources.Requests} {
		for name, quantity := range list {
			if quantity.Sign() < 0 {
				return invalid(key, "%s is negative", quote(string(name)))
			}
		}
	}
	for name, request := range resources.Requests {
		if limit, limited := resources.Limits[name]; limited && request.Cmp(limit) > 0 {
			return invalid(key, "the request of %s is above its limit", quote(string(name)))
		}
	}
	c.MoverResources = &resources
	return nil
}

func setMoverAffinity(c *Common, key, value string) *Error {
	var affinity corev1.Affinity
	if err := decode(key, value, &affinity); err != nil {
		return err
	}
	c.MoverAffinity = &affinity
	return nil
}

func parseTolerations(key, value string) ([]corev1.Toleration, *Error) {
	var tolerations []corev1.Toleration
	if err := decode(key, value, &tolerations); err != nil {
		return nil, err
	}
	for _, t := range tolerations {
		switch {
		case t.Operator != "" && t.Operator != corev1.TolerationOpEqual && t.Operator != corev1.TolerationOpExists:
			return nil, invalid(key, "operator %s is neither Equal nor Exists", quote(string(t.Operator)))
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			return nil, invalid(key, "a toleration with operator Exists has no value")
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			return nil, invalid(key, "a toleration without a key needs operator Exists")
		}
	}
	return tolerations, nil
}
