// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
)

func TestEpochs(t *testing.T) {
	for epoch, want := range map[string]uint64{"": 0, "1-a": 1, "41-f00d-1": 41, "x-1": 0, "7": 7} {
		if got := EpochCounter(epoch); got != want {
			t.Errorf("the counter of %q is %d, want %d", epoch, got, want)
		}
	}
	if got := NextEpoch("", 0, "ab"); got != "1-ab" {
		t.Errorf("the first promotion begins epoch %q", got)
	}
	if got := NextEpoch("", 3, "ab"); got != "4-ab" {
		t.Errorf("after a greater one: %s", got)
	}
	if got := NextEpoch("9-cd", 3, "ab"); got != "10-ab" {
		t.Errorf("9-cd is followed by %q", got)
	}
}

func TestLineageOnAVolume(t *testing.T) {
	lineage := v1alpha1.Lineage{ReplicationID: "db", Epoch: "2-ab", Seq: 7}
	for text, want := range map[string]*v1alpha1.Lineage{LineageText(lineage): &lineage, "": nil, "{": nil, `{"seq":-1}`: nil} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationLineage: text}}}
		got := LineageOf(pv)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}
