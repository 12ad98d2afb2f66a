// SPDX-License-Identifier: Apache-2.0

// Package conditions sets the conditions of a resource, always with the generation they are about and a bounded message.
package conditions

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messageLimit is far below the API's 32 KiB: a condition is read by people.
const messageLimit = 1024

// Setter sets conditions of one resource.
type Setter struct {
	conditions *[]metav1.Condition
	generation int64
}

// For makes a Setter for the conditions of a resource of that generation.
func For(conditions *[]metav1.Condition, generation int64) Setter {
	return Setter{conditions: conditions, generation: generation}
}

// True sets a condition to True.
func (s Setter) True(kind, reason, message string) {
	s.set(kind, metav1.ConditionTrue, reason, message)
}

// False sets a condition to False.
func (s Setter) False(kind, reason, message string) {
	s.set(kind, metav1.ConditionFalse, reason, message)
}

// Unknown sets a condition to Unknown.
func (s Setter) Unknown(kind, reason, message string) {
	s.set(kind, metav1.ConditionUnknown, reason, message)
}

func (s Setter) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(s.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message), ObservedGeneration: s.generation,
	})
}

// Reason of a condition; empty where it is not set.
func (s Setter) Reason(kind string) string { return ReasonOf(*s.conditions, kind) }

// Says tells whether the condition has this reason and message already.
func (s Setter) Says(kind, reason, message string) bool {
	c := meta.FindStatusCondition(*s.conditions, kind)
	return c != nil && c.Reason == reason && c.Message == cut(message)
}

// ReasonOf a condition; empty where it is not set.
func ReasonOf(conditions []metav1.Condition, kind string) string {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}

// KeepTransitions gives conditions whose status is the same as before the time at which it became so, whatever they were in
// between: a reconcile sets them step by step, and only its end counts.
func KeepTransitions(before, now []metav1.Condition) {
	for i := range now {
		if old := meta.FindStatusCondition(before, now[i].Type); old != nil && old.Status == now[i].Status {
			now[i].LastTransitionTime = old.LastTransitionTime
		}
	}
}

// cut shortens without splitting a character.
func cut(message string) string {
	if len(message) <= messageLimit {
		return message
	}
	message = message[:messageLimit]
	for len(message) > 0 && !utf8.ValidString(message) {
		message = message[:len(message)-1]
	}
	return message
}
