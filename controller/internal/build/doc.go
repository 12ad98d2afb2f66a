// SPDX-License-Identifier: Apache-2.0

// Package build makes the children of Sources and Destinations as objects. Its functions are pure: they read no cluster,
// no clock and no randomness, so the same input gives the same object, and hashes of it can be compared.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// Child says whose child an object is.
type Child struct {
	// Kind of the owner: Source or Destination.
	Kind  string
	Owner metav1.Object
	// Namespace the child lives in.
	Namespace string
	// Name of the child.
	Name string
	// Set is the name shared by all children of the owner, see names.
	Set string
}

func (c Child) role() string {
	if c.Kind == "Source" {
		return names.RoleSource
	}
	return names.RoleDestination
}

func (c Child) labels() map[string]string { return names.Labels(c.role(), c.Set, c.Owner) }

// meta is the metadata of a child, with annotations of its own.
func (c Child) meta(annotations map[string]string) metav1.ObjectMeta {
	all := maps.Clone(annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[v1alpha1.AnnotationOwner] = names.Owner(c.Kind, c.Owner)
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: c.labels(), Annotations: all}
}

// Hash of anything that has a JSON form, 16 hex digits.
func Hash(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		// Only channels, functions and cycles cannot be written, and no API type has one.
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
