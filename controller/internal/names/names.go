// SPDX-License-Identifier: Apache-2.0

// Package names gives the children of a resource their names and labels. A name depends on kind, namespace and name of
// the owner alone, so that children are found again when the owner was restored under another uid.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
)

// Roles of movers, the values of v1alpha1.LabelRole.
const (
	RoleSource      = "source"
	RoleDestination = "destination"
)

// Source is the name of the children of a Source.
func Source(namespace, name string) string { return child("src", "Source", namespace, name) }

// Destination is the name of the children of a Destination, all of which live in the vault.
func Destination(namespace, name string) string {
	return child("dst", "Destination", namespace, name)
}

// FinalSync is the name of the vault's children of a Source whose volume was taken for its final sync.
func FinalSync(namespace, name string) string { return child("fin", "Source", namespace, name) }

// Restored is the name of the claim into which an image is restored to be promoted.
func Restored(destination string) string { return destination + "-new" }

// Guard is the name of the mover that refuses a Source while the Destination is promoted.
func Guard(destination string) string { return destination + "-guard" }

// Image is the name of an image of the staging volume, unique to the receive Job whose transfer it holds.
func Image(destination string, jobUID string) string {
	sum := sha256.Sum256([]byte(jobUID))
	return destination + "-" + hex.EncodeToString(sum[:4])
}

// child is at most 63 bytes long, a valid DNS label. The kind is part of the hash: a Source and a Destination may share
// a name.
func child(prefix, kind, namespace, name string) string {
	sum := sha256.Sum256([]byte(kind + "/" + namespace + "/" + name))
	return "vf-" + prefix + "-" + hex.EncodeToString(sum[:8])
}

// Owner is the value of v1alpha1.AnnotationOwner.
func Owner(kind string, owner metav1.Object) string {
	return kind + "/" + owner.GetNamespace() + "/" + owner.GetName()
}

// ParseOwner takes the value of v1alpha1.AnnotationOwner apart; ok is false where it is none of this kind.
func ParseOwner(kind, value string) (namespace, name string, ok bool) {
	parts := strings.Split(value, "/")
	if len(parts) != 3 || parts[0] != kind {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// Labels of a child. They permit the controller to delete it, see Deletable.
func Labels(role, childName string, owner metav1.Object) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		v1alpha1.LabelOwnerUID:  string(owner.GetUID()),
		v1alpha1.LabelRole:      role,
		v1alpha1.LabelChild:     childName,
	}
}

// Deletable tells whether an object bears the labels that its current owner's children bear. Nothing else is ever
// deleted.
func Deletable(object metav1.Object, owner metav1.Object) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy &&
		labels[v1alpha1.LabelOwnerUID] == string(owner.GetUID())
}
