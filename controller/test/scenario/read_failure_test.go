// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"volferry.io/controller/api/v1alpha1"
)

// failingReads answers some of the controller's reads with an error of the server, while it is on.
type failingReads struct {
	next http.RoundTripper
	on   *atomic.Bool
	kind string
}

func (f failingReads) RoundTrip(request *http.Request) (*http.Response, error) {
	watches := request.URL.Query().Get("watch") != ""
	if !f.on.Load() || request.Method != http.MethodGet || watches || !strings.HasSuffix(request.URL.Path, "/"+f.kind) {
		return f.next.RoundTrip(request)
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"on purpose","reason":"InternalError","code":500}`
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// newUnreadableWorld is a world whose controller cannot list objects of a kind while on is set.
func newUnreadableWorld(t *testing.T, kind string, settle time.Duration) (w *world, on *atomic.Bool) {
	t.Helper()
	on = &atomic.Bool{}
	w = newWorld(t, func(w *world) { w.idle, w.options.FenceSettle = true, settle })
	config := w.site.plane.Controller()
	config.QPS, config.Burst = 200, 400
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return failingReads{&forbiddenCounter{next, w}, on, kind}
	})
	w.stop = w.run(config)
	return w, on
}

// Where it cannot be read whether a volume is used, it is: it is not taken, and one that was just taken goes back.
func TestUnreadableMeansInUse(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pods", "volumeattachments"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, on := newUnreadableWorld(t, kind, time.Second)
			w.relocatable()
			before := w.pv(w.pvc("data").Spec.VolumeName).Spec.ClaimRef
			on.Store(true)
			w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
			w.finalSynced(v1alpha1.ReasonInUse)
			if text := conditionsText(w.source("p").Status.Conditions); !strings.Contains(text, "on purpose") {
				t.Errorf("what failed is not told:\n%s", text)
			}
			w.never(2*time.Second, "a fence", func() bool { return w.finalClaim() != nil })
			if now := w.bound("data", corev1.PersistentVolumeReclaimRetain).Spec.ClaimRef; *now != *before {
				t.Errorf("the volume refers to %+v, referred to %+v", now, before)
			}
			on.Store(false)
			w.finalSynced(v1alpha1.ReasonCompleted)
		})
	}
	t.Run("while the fence settles", func(t *testing.T) {
		t.Parallel()
		w, on := newUnreadableWorld(t, "volumeattachments", 4*time.Second)
		w.relocatable()
		w.finalSync(v1alpha1.FinalSyncSpec{ID: "r1"})
		w.eventually(30*time.Second, "the fence", func() bool { return w.finalClaim() != nil })
		on.Store(true)
		w.finalSynced(v1alpha1.ReasonInUse)
		w.eventually(30*time.Second, "the volume to go back", func() bool {
			return w.finalClaim() == nil && w.pvc("data").Status.Phase == corev1.ClaimBound
		})
		w.bound("data", corev1.PersistentVolumeReclaimRetain)
		on.Store(false)
		w.finalSynced(v1alpha1.ReasonCompleted)
	})
}
