// SPDX-License-Identifier: Apache-2.0

package params

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kinds, as they are spelled in messages.
const (
	kindSource      = "Source"
	kindDestination = "Destination"
)

// setter parses one parameter's value into its place; the value is not empty unless emptyMeans says so.
type setter[T any] func(target *T, key, value string) *Error

// ParseSource reads the parameters of a Source. The error, if any, is an *Error about the first bad parameter in
// alphabetical order, so that the same input always gives the same message.
func ParseSource(parameters map[string]string, options Options) (*SourceParams, error) {
	p := &SourceParams{
		Common: Common{Port: DefaultPort, CopyMethod: CopySnapshot},
		Delete: true, Verify: "none", Retries: 5, ConnectTimeout: 60 * time.Second,
	}
	setters := sourceSetters()
	addCommon(setters, func(s *SourceParams) *Common { return &s.Common }, options)
	if err := apply(p, parameters, setters, kindSource); err != nil {
		return nil, err
	}
	if p.KeySecret == "" {
		return nil, invalid("keySecret", "is required: the name of the Secret with the key")
	}
	return p, nil
}

// ParseDestination reads the parameters of a Destination; errors as in ParseSource.
func ParseDestination(parameters map[string]string, options Options) (*DestinationParams, error) {
	p := &DestinationParams{
		Common: Common{
			Port: DefaultPort, CopyMethod: CopySnapshot,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		},
		VolumeMode: corev1.PersistentVolumeFilesystem, KeepImages: 1, ServiceType: corev1.ServiceTypeClusterIP,
	}
	setters := destinationSetters()
	addCommon(setters, func(d *DestinationParams) *Common { return &d.Common }, options)
	if err := apply(p, parameters, setters, kindDestination); err != nil {
		return nil, err
	}
	if p.Capacity == nil && !options.Adopting {
		return nil, invalid("capacity", "is required: the size of the volume that receives, such as 10Gi")
	}
	return p, nil
}

// SourceKeys and DestinationKeys list the parameters that exist, sorted.
func SourceKeys() []string {
	setters := sourceSetters()
	addCommon(setters, func(s *SourceParams) *Common { return &s.Common }, Options{})
	return sortedKeys(setters)
}

// DestinationKeys lists the parameters of a Destination, sorted.
func DestinationKeys() []string {
	setters := destinationSetters()
	addCommon(setters, func(d *DestinationParams) *Common { return &d.Common }, Options{})
	return sortedKeys(setters)
}

func apply[T any](target *T, parameters map[string]string, setters map[string]setter[T], kind string) error {
	for _, key := range sortedKeys(parameters) {
		set, known := setters[key]
		if !known {
			return unknown(key, kind)
		}
		value := parameters[key]
		if value == "" && key != "storageClassName" {
			continue
		}
		if strings.ContainsRune(value, 0) {
			return invalid(key, "holds a zero byte")
		}
		if err := set(target, key, value); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
