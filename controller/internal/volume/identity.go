// SPDX-License-Identifier: Apache-2.0

// Package volume tells volumes apart.
package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Identity of the storage behind a PersistentVolume. It stays the same when the volume is given to another claim or
// described by another PersistentVolume object.
type Identity struct {
	// Driver is the CSI driver's name, or the kind of the in-tree source, such as local or hostPath.
	Driver string
	// HandleHash is 32 hex digits that identify the volume without showing its name in the storage.
	HandleHash string
}

// Of gives the identity of a volume.
func Of(pv *corev1.PersistentVolume) Identity {
	if csi := pv.Spec.CSI; csi != nil {
		return identity(csi.Driver, csi.VolumeHandle)
	}
	// Exactly one field of the source is set; its content is the handle.
	source := reflect.ValueOf(pv.Spec.PersistentVolumeSource)
	for i := range source.NumField() {
		if field := source.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			handle, err := json.Marshal(field.Interface())
			if err != nil {
				break
			}
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return identity(name, string(handle)+nodes(pv))
		}
	}
	return identity("unknown", string(pv.UID))
}

// nodes belong to the handle of a volume that lies on a node: the same path elsewhere is another volume.
func nodes(pv *corev1.PersistentVolume) string {
	if pv.Spec.Local == nil && pv.Spec.HostPath == nil {
		return ""
	}
	text, err := json.Marshal(pv.Spec.NodeAffinity)
	if err != nil {
		return ""
	}
	return string(text)
}

func identity(driver, handle string) Identity {
	sum := sha256.Sum256([]byte(driver + "\x00" + handle))
	return Identity{Driver: driver, HandleHash: hex.EncodeToString(sum[:16])}
}
