// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func csi(driver, handle string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return pv
}

func local(path, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: path}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}}
	return pv
}

func TestIdentity(t *testing.T) {
	described := csi("a.example.com", "handle")
	described.Name, described.Spec.CSI.VolumeAttributes = "other-object", map[string]string{"k": "v"}
	if Of(described) != Of(csi("a.example.com", "handle")) {
		t.Error("the same volume in another object is taken for another volume")
	}
	distinct := []*corev1.PersistentVolume{
		csi("a.example.com", "handle"), csi("a.example.com", "handle2"), csi("b.example.com", "handle"),
		local("/mnt/a", "n1"), local("/mnt/b", "n1"), local("/mnt/a", "n2"),
	}
	seen := map[Identity]int{}
	for i, pv := range distinct {
		if other, there := seen[Of(pv)]; there {
			t.Errorf("volumes %d and %d have the same identity", i, other)
		}
		seen[Of(pv)] = i
	}
	if got := Of(local("/mnt/secret-path", "n1")); got.Driver != "local" || strings.Contains(got.HandleHash, "secret") || len(got.HandleHash) != 32 {
		t.Errorf("got %+v", got)
	}
}

func TestUsedBy(t *testing.T) {
	byName := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}}}
	ephemeral := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v",
		VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}}}
	over := *byName.DeepCopy()
	over.Status.Phase = corev1.PodSucceeded
	tests := map[string]struct {
		pod   corev1.Pod
		claim string
		want  bool
	}{
		"by name":             {byName, "c", true},
		"another claim":       {byName, "d", false},
		"ephemeral":           {ephemeral, "p-v", true},
		"another's ephemeral": {ephemeral, "q-v", false},
		"over":                {over, "c", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := UsedBy(&test.pod, test.claim); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
