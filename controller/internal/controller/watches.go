// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// ownedBy wakes the owner of a child. Children bear no owner references: those would be followed by the garbage collector
// when the owner comes back from a backup under another uid.
func ownedBy(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return ownerRequests(kind, object)
	})
}

func ownerRequests(kind string, object client.Object) []reconcile.Request {
	namespace, name, ok := names.ParseOwner(kind, object.GetAnnotations()[v1alpha1.AnnotationOwner])
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// deletionChanged lets the beginning of a deletion through, which changes the generation only where there is a finalizer.
var deletionChanged = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return true },
	DeleteFunc:  func(event.DeleteEvent) bool { return true },
	GenericFunc: func(event.GenericEvent) bool { return true },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}
