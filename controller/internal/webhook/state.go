// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
)

// Words of states that close the webhook; they belong to restores and final syncs.
const (
	conditionRestored = "Restored"
	reasonRestoring   = "Restoring"
)

// requestNamespace makes request ids of idempotency keys; an arbitrary constant.
var requestNamespace = uuid.MustParse("6d0b7c62-92a5-4b61-9d1c-3f4f2a4f0f5e")

func validKey(key string) bool {
	return len(key) <= maxKey && strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// requestID is the same for the same Source and key, on every replica and after a restart.
func requestID(source *v1alpha1.Source, key string) string {
	return uuid.NewSHA1(requestNamespace, []byte(string(source.UID)+"\x00"+key)).String()
}

// known tells whether a request already waits, is being served, or was the last to be served.
func known(source *v1alpha1.Source, id string) bool {
	status := &source.Status
	if source.Annotations[v1alpha1.AnnotationSyncRequest] == id || status.LastWebhookRequest == id {
		return true
	}
	// The word under which the reconciler notes it.
	request := "webhook:" + id
	return status.ActiveSync != nil && slices.Contains(status.ActiveSync.Requests, request) ||
		status.Retry != nil && slices.Contains(status.Retry.Requests, request)
}

// closed says why a Source takes no request now; empty if it does. A paused one does: it is served afterwards.
func closed(source *v1alpha1.Source) string {
	if !v1alpha1.BuiltInMethod(source.Spec.ReplicationMethod) {
		return "the Source uses an external method, which has triggers of its own"
	}
	if !source.DeletionTimestamp.IsZero() {
		return "the Source is being deleted"
	}
	incarnation := source.Annotations[v1alpha1.AnnotationIncarnation]
	restored := meta.FindStatusCondition(source.Status.Conditions, conditionRestored)
	synchronizing := meta.FindStatusCondition(source.Status.Conditions, v1alpha1.ConditionSynchronizing)
	reason := ""
	if synchronizing != nil && synchronizing.Status != metav1.ConditionTrue {
		reason = synchronizing.Reason
	}
	switch {
	case incarnation != "" && incarnation != string(source.UID),
		restored != nil && restored.Status != metav1.ConditionTrue,
		reason == reasonRestoring:
		return "the Source was restored from a backup and waits"
	case source.Spec.FinalSync != nil, reason == v1alpha1.ReasonFenced:
		return "the Source is in its final sync, or fenced after it"
	}
	return ""
}
