// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestChildNames(t *testing.T) {
	long := strings.Repeat("n", 253)
	seen := map[string]bool{}
	for _, name := range []string{
		Source("ns", "a"), Destination("ns", "a"), Source("ns", "b"), Source("n", "sa"), Source(long, long),
		FinalSync("ns", "a"), Restored(Destination("ns", "a")), Guard(Destination("ns", "a")),
		Image(Destination("ns", "a"), "1"), Image(Destination("ns", "a"), "2"),
	} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s is no DNS label: %v", name, problems)
		}
		if seen[name] {
			t.Errorf("%s was given twice", name)
		}
		seen[name] = true
	}
	if got, want := Source("ns", "a"), "vf-src-b5928f3a9bfc16b8"; got != want {
		t.Errorf("got %s, want %s: names must not change between versions", got, want)
	}
}

func TestDeletable(t *testing.T) {
	owner := &metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: types.UID("1")}
	restored := &metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: types.UID("2")}
	ours := &metav1.ObjectMeta{Labels: Labels(RoleSource, "vf-src-x", owner)}
	if !Deletable(ours, owner) {
		t.Error("a child of its own owner is not deletable")
	}
	if Deletable(ours, restored) {
		t.Error("the child of another incarnation is deletable")
	}
	if Deletable(&metav1.ObjectMeta{}, owner) {
		t.Error("an object without labels is deletable")
	}
}

func TestOwnerRoundTrip(t *testing.T) {
	owner := &metav1.ObjectMeta{Namespace: "ns", Name: "a.b"}
	namespace, name, ok := ParseOwner("Source", Owner("Source", owner))
	if !ok || namespace != "ns" || name != "a.b" {
		t.Errorf("got %q %q %v", namespace, name, ok)
	}
	if _, _, ok := ParseOwner("Destination", Owner("Source", owner)); ok {
		t.Error("a Source was taken for a Destination")
	}
}
