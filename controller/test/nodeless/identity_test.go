// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run programs as others")
	}
}

// output gives what the Job's only run printed.
func output(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	runs := runsOf(job)
	if len(runs) != 1 {
		t.Fatalf("runs: %+v", runs)
	}
	content, err := os.ReadFile(runs[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestPodRunsAsItsUser(t *testing.T) {
	needRoot(t)
	namespace := newNamespace(t)
	volume := bound(t, newClaim(t, namespace, "data", "plain"))
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"id": "me"},
	})
	for name, test := range map[string]struct {
		script string
		pod    corev1.PodSecurityContext
		own    *corev1.SecurityContext
		fails  bool
		want   string
	}{
		"image": {script: "id -u; id -g; id -G", want: "10001\n10001\n10001"},
		"other": {
			script: "id -u; id -g; id -G", want: "1234\n55\n55 66",
			pod: corev1.PodSecurityContext{RunAsUser: ptr.To[int64](99), RunAsGroup: ptr.To[int64](55), SupplementalGroups: []int64{66}},
			own: &corev1.SecurityContext{RunAsUser: ptr.To[int64](1234)},
		},
		"without-a-group": {script: "touch " + volume + "/no", fails: true},
		"with-a-group": {
			script: "touch " + volume + "/yes && stat -c %g " + volume + "/yes", want: "777",
			pod: corev1.PodSecurityContext{FSGroup: ptr.To[int64](777)},
		},
		"capabilities-of-root": {
			script: "grep CapEff /proc/self/status", want: "CapEff:\t0000000000000001",
			pod: corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)},
			own: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{
				Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(t, namespace, name, test.script, mount("data", "/data"), func(job *batchv1.Job) {
				job.Spec.Template.Spec.SecurityContext = &test.pod
				job.Spec.Template.Spec.Containers[0].SecurityContext = test.own
			})
			if test.fails {
				fails(t, job)
				return
			}
			completes(t, job)
			if got := output(t, job); got != test.want {
				t.Fatalf("printed %q, want %q", got, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(volume, "no")); !os.IsNotExist(err) {
		t.Fatalf("a stranger wrote to the volume: %v", err)
	}
}

// The kubelet does not start such a pod, it only says why.
func TestRootIsRefusedWhereThePodForbidsIt(t *testing.T) {
	needRoot(t)
	job := newJob(t, newNamespace(t), "root", "true", func(job *batchv1.Job) {
		job.Spec.Template.Spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	})
	pod := podOf(t, job)
	eventually(t, pod, "the refusal is reported", func() bool {
		statuses := pod.Status.ContainerStatuses
		return len(statuses) == 1 && statuses[0].State.Waiting != nil &&
			statuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	if runs := runsOf(job); len(runs) != 0 {
		t.Fatalf("it ran: %+v", runs)
	}
}
