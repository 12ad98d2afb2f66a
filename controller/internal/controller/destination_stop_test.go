// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
	"volferry.io/controller/internal/params"
)

// endedWith is a listener that has ended with that code; sessions is JSON, or empty for a mover that left no result.
func endedWith(code int, sessions string) moverJob {
	message := ""
	if sessions != "" {
		result := "failed"
		if code == 0 {
			result = "ok"
		}
		message = fmt.Sprintf(`{"event":"result","version":1,"role":"destination","result":%q,"exit_code":%d,"sessions":%s}`, result, code, sessions)
	}
	return moverJob{
		job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job"}},
		pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name:  build.ContainerName,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message}},
		}}}},
	}
}

// Only a listener of which it is known that the volume was clean before, and that nobody connected, leaves it clean.
func TestJudgeListener(t *testing.T) {
	marked := v1alpha1.StagingVolume{Dirty: true, Listener: "job"}
	cut := v1alpha1.StagingVolume{Dirty: true, Listener: "job", Cut: true}
	for name, test := range map[string]struct {
		mover  moverJob
		before v1alpha1.StagingVolume
		want   v1alpha1.StagingVolume
	}{
		"nobody connected":           {endedWith(143, "0"), marked, v1alpha1.StagingVolume{}},
		"a session was cut":          {endedWith(143, "1"), marked, cut},
		"no result":                  {endedWith(143, ""), marked, marked},
		"an old mover":               {endedWith(143, "null"), marked, marked},
		"marked for another one":     {endedWith(143, "0"), v1alpha1.StagingVolume{Dirty: true, Listener: "other"}, v1alpha1.StagingVolume{Dirty: true, Listener: "other"}},
		"marked for nobody known":    {endedWith(143, "0"), v1alpha1.StagingVolume{Dirty: true}, v1alpha1.StagingVolume{Dirty: true}},
		"cut before":                 {endedWith(143, "0"), cut, cut},
		"complete, not yet taken in": {endedWith(0, "1"), marked, marked},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.Destination{}
			d.Status.Staging = &test.before
			run := &destinationRun{destination: d}
			run.judgeListener(test.mover)
			if *d.Status.Staging != test.want {
				t.Errorf("got %+v, want %+v", *d.Status.Staging, test.want)
			}
		})
	}
}

// Whoever ends a listener takes in what it has received, or waits for the verdict on it, however late it ended.
func TestEndListenerTakesIn(t *testing.T) {
	for name, test := range map[string]struct {
		finished, late bool
		received       bool
	}{
		"complete":             {true, false, true},
		"complete, but late":   {true, true, true},
		"ended, no verdict":    {false, false, false},
		"no verdict, and late": {false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "uid"}}
			run := destinationRunOf(fakeBase(t), d)
			d.Status.Staging = &v1alpha1.StagingVolume{PVName: "pv", Dirty: true, Listener: "job"}
			child := build.Claim(build.ClaimInput{Child: run.child(run.childSet)}).ObjectMeta
			mover := endedWith(0, "1")
			mover.job.ObjectMeta = child
			mover.job.UID = "job"
			if test.finished {
				mover.job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			}
			mover.pod.ObjectMeta = metav1.ObjectMeta{
				Namespace: child.Namespace, Name: "pod", Labels: map[string]string{batchv1.JobNameLabel: child.Name, batchv1.ControllerUidLabel: "job"},
			}
			if test.late {
				mover.pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
				mover.pod.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			}
			run.base = fakeBase(t, d, mover.job, mover.pod)
			run.Recorder = events.NewFakeRecorder(9)
			run.params = &params.DestinationParams{Common: params.Common{CopyMethod: params.CopyDirect}}
			if err := run.APIReader.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if err := run.endListener(t.Context(), false); trouble(err) != "" {
				t.Fatal(err)
			}
			if received := d.Status.LastReceived != nil; received != test.received {
				t.Errorf("received: %v", received)
			}
			err := run.APIReader.Get(t.Context(), client.ObjectKeyFromObject(mover.job), mover.job)
			if gone := apierrors.IsNotFound(err); gone != (!test.finished && test.late) {
				t.Errorf("the Job is gone: %v, %v", gone, err)
			}
		})
	}
}
