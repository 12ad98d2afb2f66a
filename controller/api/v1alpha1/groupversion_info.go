// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the resources of volferry.io/v1alpha1: Source and Destination, one end each of a one-way
// replication of a volume.
//
// +kubebuilder:object:generate=true
// +groupName=volferry.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all types in this package.
var GroupVersion = schema.GroupVersion{Group: "volferry.io", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the types of this package.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Source{}, &SourceList{}, &Destination{}, &DestinationList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
