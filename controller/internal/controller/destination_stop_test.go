// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
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
