// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newJob makes a Job that runs a shell script, changed by the functions.
func newJob(t *testing.T, namespace, name, script string, changes ...func(*batchv1.Job)) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
					"app.kubernetes.io/managed-by": "volferry", "app": name,
				}},
				Spec: corev1.PodSpec{
					RestartPolicy:   corev1.RestartPolicyNever,
					SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)},
					Containers: []corev1.Container{{
						Name: "main", Image: "none", Command: []string{"sh", "-c", script},
					}},
				},
			},
		},
	}
	for _, change := range changes {
		change(job)
	}
	create(t, job)
	return job
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for index := range job.Status.Conditions {
		if job.Status.Conditions[index].Type == kind && job.Status.Conditions[index].Status == corev1.ConditionTrue {
			return &job.Status.Conditions[index]
		}
	}
	return nil
}

func completes(t *testing.T, job *batchv1.Job) {
	t.Helper()
	eventually(t, job, "the Job completes", func() bool { return jobCondition(job, batchv1.JobComplete) != nil })
}

func fails(t *testing.T, job *batchv1.Job) *batchv1.JobCondition {
	t.Helper()
	eventually(t, job, "the Job fails", func() bool { return jobCondition(job, batchv1.JobFailed) != nil })
	return jobCondition(job, batchv1.JobFailed)
}

// podOf finds the only pod of a Job.
func podOf(t *testing.T, job *batchv1.Job) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	deadline := time.Now().Add(30 * time.Second)
	for len(pods.Items) != 1 {
		if time.Now().After(deadline) {
			t.Fatalf("%d pods of Job %s", len(pods.Items), job.Name)
		}
		if err := c.List(t.Context(), pods, client.InNamespace(job.Namespace),
			client.MatchingLabels{"batch.kubernetes.io/job-name": job.Name}); err != nil {
			t.Fatal(err)
		}
	}
	return &pods.Items[0]
}

func runsOf(job *batchv1.Job) []Run {
	var found []Run
	for _, run := range node.Runs() {
		if run.Namespace == job.Namespace && run.Job == job.Name {
			found = append(found, run)
		}
	}
	return found
}

func mount(claim, path string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: claim, MountPath: path})
	}
}

func mountSecret(secret, path string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: secret, MountPath: path})
	}
}

// The real Job controller makes the pod and concludes from what is reported; the claim, which binds with its first
// consumer, and the secret are waited for.
func TestJobRunsWhenClaimAndSecretAreThere(t *testing.T) {
	namespace := newNamespace(t)
	job := newJob(t, namespace, "waits", `echo "$WHO $SECRET"`, mount("late", "/data"), mountSecret("later", "/keys"),
		func(job *batchv1.Job) {
			job.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
				{Name: "WHO", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
				}},
				{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "later"}, Key: "key",
				}}},
			}
		})
	pod := podOf(t, job)
	eventually(t, pod, "the pod waits for its claim", func() bool {
		return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable
	})
	claim := newClaim(t, namespace, "late", "late")
	eventually(t, pod, "the pod waits for its secret", func() bool {
		return pod.Spec.NodeName != "" && len(pod.Status.ContainerStatuses) == 1 &&
			strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, `"later" not found`)
	})
	bound(t, claim)
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "later"}, StringData: map[string]string{"key": "value"},
	})
	completes(t, job)
	runs := runsOf(job)
	if len(runs) != 1 || runs[0].ExitCode != 0 || runs[0].Running() {
		t.Fatalf("runs: %+v", runs)
	}
	if got := read(t, runs[0].Output, len(namespace)+7); got != namespace+" value\n" {
		t.Fatalf("printed %q", got)
	}
}

// A pod whose deadline is brought forward is ended, and stays with what its program left.
func TestDeadlineEndsAPod(t *testing.T) {
	namespace := newNamespace(t)
	job := newJob(t, namespace, "deadline", `trap 'echo ended >/dev/termination-log; exit 143' TERM; while :; do sleep 0.1; done`)
	pod := podOf(t, job)
	eventually(t, pod, "the pod runs", func() bool { return pod.Status.Phase == corev1.PodRunning })
	before := pod.DeepCopy()
	pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	if err := c.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	fails(t, job)
	eventually(t, pod, "the pod's end", func() bool { return pod.Status.Phase == corev1.PodFailed })
	if state := pod.Status.ContainerStatuses[0].State.Terminated; state == nil || state.ExitCode != 143 {
		t.Errorf("the container ended with %+v", state)
	}
}

func permanentCodes(job *batchv1.Job) {
	job.Spec.BackoffLimit = ptr.To[int32](3)
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{2, 11, 12, 20, 23, 30},
		},
	}}}
}

func TestPermanentExitCodeFailsTheJobAtOnce(t *testing.T) {
	namespace := newNamespace(t)
	job := newJob(t, namespace, "permanent", "exit 11", permanentCodes)
	if condition := fails(t, job); condition.Reason != batchv1.JobReasonPodFailurePolicy {
		t.Fatalf("the Job failed for %s, want the policy", condition.Reason)
	}
	if runs := runsOf(job); len(runs) != 1 || runs[0].ExitCode != 11 {
		t.Fatalf("runs: %+v", runs)
	}
}

func TestInjectedExitCodeRunsNothing(t *testing.T) {
	node.SetHooks(Hooks{Run: func(pod *corev1.Pod) Injection {
		return Injection{Skip: true, ExitCode: 30, Message: `{"event":"result"}`}
	}})
	defer node.SetHooks(Hooks{})
	job := newJob(t, newNamespace(t), "injected", "exit 0", permanentCodes)
	pod := podOf(t, job)
	fails(t, job)
	get(t, pod)
	state := pod.Status.ContainerStatuses[0].State.Terminated
	if state == nil || state.ExitCode != 30 || state.Message != `{"event":"result"}` {
		t.Fatalf("state: %+v", state)
	}
	if runs := runsOf(job); len(runs) != 1 || len(runs[0].Command) != 0 {
		t.Fatalf("runs: %+v", runs)
	}
}

// Deleting a pod sends SIGTERM first; a program that ignores it is killed after the grace period.
func TestDeletedPodIsEndedWithinItsGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		hang   bool
		code   int32
	}{
		"obedient": {script: `trap 'exit 143' TERM; while :; do sleep 0.05; done`, code: 143},
		"stubborn": {script: `trap '' TERM; while :; do sleep 0.05; done`, code: 137},
		"hanging":  {hang: true, code: 143},
	} {
		t.Run(name, func(t *testing.T) {
			node.SetHooks(Hooks{Run: func(*corev1.Pod) Injection { return Injection{Hang: test.hang} }})
			defer node.SetHooks(Hooks{})
			job := newJob(t, newNamespace(t), name, test.script, func(job *batchv1.Job) {
				job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
			})
			pod := podOf(t, job)
			eventually(t, pod, "the pod runs", func() bool { return pod.Status.Phase == corev1.PodRunning })
			time.Sleep(200 * time.Millisecond) // until the shell has set its trap
			if err := c.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			fails(t, job)
			gone(t, pod)
			if runs := runsOf(job); len(runs) != 1 || runs[0].ExitCode != test.code {
				t.Fatalf("runs: %+v", runs)
			}
		})
	}
}

func TestOverlapsAreNoticed(t *testing.T) {
	namespace := newNamespace(t)
	bound(t, newClaim(t, namespace, "shared", "plain"))
	both := []*batchv1.Job{
		newJob(t, namespace, "one", "sleep 1", mount("shared", "/data")),
		newJob(t, namespace, "two", "sleep 1", mount("shared", "/data")),
	}
	for _, job := range both {
		completes(t, job)
	}
	runs := append(runsOf(both[0]), runsOf(both[1])...)
	if found := Overlaps(runs, ByVolume); len(found) != 1 {
		t.Fatalf("%d overlaps, want 1", len(found))
	}
	if found := Overlaps(runs, ByLabel("app")); len(found) != 0 {
		t.Fatalf("overlaps of different labels: %+v", found)
	}
}

func TestPodGoesToTheNodeItAsksFor(t *testing.T) {
	job := newJob(t, newNamespace(t), "picky", "true", func(job *batchv1.Job) {
		job.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "second"}
	})
	completes(t, job)
	if got := podOf(t, job).Spec.NodeName; got != "second" {
		t.Fatalf("node %q", got)
	}
}

// Nobody listens on a Service without a ready pod; with one, what is sent to its address reaches that pod.
func TestServiceForwardsToItsPod(t *testing.T) {
	namespace := newNamespace(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "echo"},
			Ports:    []corev1.ServicePort{{Port: 8000, TargetPort: intString("answers")}},
		},
	}
	create(t, service)
	address := net.JoinHostPort(service.Spec.ClusterIP, "8000")
	if _, err := net.Dial("tcp", address); err == nil {
		t.Fatal("a Service without pods was reached")
	}
	const program = `import os,socket
s=socket.create_server((os.environ["IP"],9000)); c,_=s.accept(); c.sendall(c.recv(100).upper()); c.recv(100)`
	job := newJob(t, namespace, "echo", "", func(job *batchv1.Job) {
		container := &job.Spec.Template.Spec.Containers[0]
		container.Command = []string{"python3", "-c", program}
		container.Ports = []corev1.ContainerPort{{Name: "answers", ContainerPort: 9000}}
		container.Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
		}}}
	})
	var connection net.Conn
	answer := make([]byte, 5)
	deadline := time.Now().Add(20 * time.Second)
	for {
		var err error
		if connection, err = net.Dial("tcp", address); err == nil {
			if _, err = fmt.Fprint(connection, "hello"); err == nil {
				_, err = io.ReadFull(connection, answer)
			}
		}
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer connection.Close()
	if string(answer) != "HELLO" {
		t.Fatalf("answered %q", answer)
	}
	if cut := node.CutConnections(namespace, "echo"); cut != 1 {
		t.Fatalf("%d connections cut, want 1", cut)
	}
	if _, err := connection.Read(answer); err == nil {
		t.Fatal("the connection still works")
	}
	eventually(t, job, "the program ends", func() bool { return len(job.Status.Conditions) > 0 })
}

func TestTerminationMessageIsReported(t *testing.T) {
	// The log is found by the mover's variable, so this stands in for the mover under its name.
	script := filepath.Join(t.TempDir(), "volferry")
	write(t, script, "#!/bin/sh\necho \"$*\" >\"$VOLFERRY_TERMINATION_LOG\"; exit 4\n")
	makeExecutable(t, script)
	original := node.volferry
	node.volferry = script
	defer func() { node.volferry = original }()
	job := newJob(t, newNamespace(t), "message", "", func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Command = []string{"/usr/bin/volferry", "mover"}
		job.Spec.Template.Spec.Containers[0].Args = []string{"source"}
	})
	pod := podOf(t, job)
	fails(t, job)
	get(t, pod)
	if state := pod.Status.ContainerStatuses[0].State.Terminated; state == nil || state.Message != "mover source\n" {
		t.Fatalf("state: %+v", state)
	}
}

// What a claim that is mounted read-only holds cannot be changed by the program.
func TestReadOnlyClaimIsProtected(t *testing.T) {
	if !canProtect() {
		t.Skip("no mount namespace can be had here: only root can make one, and the root directory must be a mount point")
	}
	namespace := newNamespace(t)
	path := bound(t, newClaim(t, namespace, "data", "plain"))
	write(t, filepath.Join(path, "file"), "content")
	for name, readOnly := range map[string]bool{"writable": false, "protected": true} {
		script := "cat " + path + "/file >/dev/null && echo changed >" + path + "/file"
		job := newJob(t, namespace, name, script, mount("data", "/data"), func(job *batchv1.Job) {
			job.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = readOnly
		})
		if readOnly {
			fails(t, job)
		} else {
			completes(t, job)
		}
	}
}
