// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetter(t *testing.T) {
	var list []metav1.Condition
	set := For(&list, 3)
	set.False("Ready", "Missing", strings.Repeat("ü", 2000))
	set.True("Ready", "Found", "there")
	set.Unknown("Peer", "NotContacted", strings.Repeat("ü", 2000))
	if len(list) != 2 {
		t.Fatalf("got %d conditions, want 2", len(list))
	}
	if got := list[0]; got.Status != metav1.ConditionTrue || got.Reason != "Found" || got.ObservedGeneration != 3 {
		t.Errorf("got %+v", got)
	}
	if got := list[1].Message; len(got) > messageLimit || len(got) < messageLimit-4 || !utf8.ValidString(got) {
		t.Errorf("a long message became %d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	if set.Reason("Peer") != "NotContacted" || set.Reason("None") != "" {
		t.Error("Reason does not read back what was set")
	}
}
