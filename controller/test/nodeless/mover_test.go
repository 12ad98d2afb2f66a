// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// moverJob makes a Job of the mover as the controller would: the image's entry point, settings by environment; for a device
// the image's user without capabilities, for files root with those that keep owners.
func moverJob(t *testing.T, namespace, role, claim string, device bool, variables map[string]string) *batchv1.Job {
	t.Helper()
	return newJob(t, namespace, role, "", mountSecret("keys", "/keys"), func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		container := &spec.Containers[0]
		container.Command, container.Args = nil, []string{"mover", role}
		container.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &device}
		if !device {
			spec.SecurityContext.RunAsUser = ptr.To[int64](0)
			container.SecurityContext.Capabilities.Add = []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID"}
		}
		container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		for name, value := range variables {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
		if device {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
			container.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/block"}}
		} else {
			mount(claim, "/data")(job)
		}
	})
}

// twoEnds makes key, claims and Service of a transfer and gives the namespace.
func twoEnds(t *testing.T, changes ...func(*corev1.PersistentVolumeClaim)) (namespace string, from, to string) {
	t.Helper()
	if node.volferry == "" {
		t.Skip("no mover program: set VOLFERRY")
	}
	namespace = newNamespace(t)
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"},
		StringData: map[string]string{"id": "test", "psk": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
	})
	create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "replica"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "destination"},
			Ports:    []corev1.ServicePort{{Port: 7000, TargetPort: intstr.FromInt32(8000)}},
		},
	})
	from = bound(t, newClaim(t, namespace, "from", "plain", changes...))
	to = bound(t, newClaim(t, namespace, "to", "plain", changes...))
	return namespace, from, to
}

// result parses the line that the mover leaves for the controller.
func result(t *testing.T, job *batchv1.Job) map[string]any {
	t.Helper()
	pod := podOf(t, job)
	state := pod.Status.ContainerStatuses[0].State.Terminated
	if state == nil {
		t.Fatalf("the pod of %s has not ended", job.Name)
	}
	parsed := map[string]any{}
	if err := json.Unmarshal([]byte(state.Message), &parsed); err != nil {
		t.Fatalf("termination message %q: %v", state.Message, err)
	}
	return parsed
}

func TestMoverMovesFilesThroughTheService(t *testing.T) {
	namespace, from, to := twoEnds(t)
	content := make([]byte, 3<<20)
	_, _ = rand.Read(content)
	if err := os.WriteFile(filepath.Join(from, "random"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	destination := moverJob(t, namespace, "destination", "to", false, nil)
	source := moverJob(t, namespace, "source", "from", false, map[string]string{
		"VOLFERRY_ADDRESS": "replica." + namespace + ".svc", "VOLFERRY_PORT": "7000", "VOLFERRY_SEQ": "1",
	})
	completes(t, source)
	completes(t, destination)
	if output, err := exec.Command("diff", "-r", from, to).CombinedOutput(); err != nil {
		t.Fatalf("the volumes differ: %s", output)
	}
	for _, job := range []*batchv1.Job{source, destination} {
		if got := result(t, job); got["result"] != "ok" || got["seq"] != 1.0 {
			t.Fatalf("result of %s: %v", job.Name, got)
		}
	}
}

func TestMoverMovesABlockVolume(t *testing.T) {
	needLoopDevices(t)
	namespace, from, to := twoEnds(t, block)
	content := make([]byte, 2<<20)
	_, _ = rand.Read(content)
	file, err := os.OpenFile(from, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(content, 5<<20); err != nil {
		t.Fatal(err)
	}
	destination := moverJob(t, namespace, "destination", "to", true, nil)
	source := moverJob(t, namespace, "source", "from", true, map[string]string{
		"VOLFERRY_ADDRESS": "replica." + namespace + ".svc", "VOLFERRY_PORT": "7000", "VOLFERRY_SEQ": "1",
	})
	completes(t, source)
	completes(t, destination)
	if output, err := exec.Command("cmp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("the devices differ: %s", output)
	}
}

// The controller reads progress from the pod's own address; a cut connection is survived by the mover itself.
func TestMoverShowsProgressAndSurvivesACut(t *testing.T) {
	namespace, from, to := twoEnds(t)
	content := make([]byte, 6<<20)
	_, _ = rand.Read(content)
	for part := range 6 {
		name := filepath.Join(from, strconv.Itoa(part))
		if err := os.WriteFile(name, content[part<<20:(part+1)<<20], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	destination := moverJob(t, namespace, "destination", "to", false, nil)
	source := moverJob(t, namespace, "source", "from", false, map[string]string{
		"VOLFERRY_ADDRESS": "replica." + namespace, "VOLFERRY_PORT": "7000", "VOLFERRY_SEQ": "1",
		"VOLFERRY_BANDWIDTH_LIMIT": "2Mi",
	})
	pod := podOf(t, source)
	eventually(t, pod, "the source runs", func() bool { return pod.Status.Phase == corev1.PodRunning })
	var progress struct {
		BytesDone  int64 `json:"bytes_done"`
		BytesTotal int64 `json:"bytes_total"`
	}
	deadline := time.Now().Add(30 * time.Second)
	for progress.BytesDone == 0 || progress.BytesDone >= progress.BytesTotal {
		if time.Now().After(deadline) {
			t.Fatalf("no progress in between was seen: %+v", progress)
		}
		time.Sleep(50 * time.Millisecond)
		answer, err := http.Get("http://" + pod.Status.PodIP + ":9100/progress")
		if err != nil {
			continue
		}
		if answer.StatusCode == http.StatusOK {
			_ = json.NewDecoder(answer.Body).Decode(&progress)
		}
		_ = answer.Body.Close()
	}
	if cut := node.CutConnections(namespace, "replica"); cut == 0 {
		t.Fatal("there was no connection to cut")
	}
	completes(t, source)
	completes(t, destination)
	if output, err := exec.Command("diff", "-r", from, to).CombinedOutput(); err != nil {
		t.Fatalf("the volumes differ: %s", output)
	}
}
