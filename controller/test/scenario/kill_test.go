// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/app"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/test/nodeless"
)

// errKilled is what a controller gets that was killed: its write was done, it does not learn of it, and nothing more
// reaches the API server.
var errKilled = errors.New("killed")

// killer ends a controller right after one of its writes.
type killer struct {
	next http.RoundTripper
	kill context.CancelFunc
	last lastWrite

	mu     sync.Mutex
	writes []string
	dead   bool
}

// lastWrite tells whether the n-th write of a controller is its last one.
type lastWrite func(n int, write string) bool

// afterWrites is the k-th write; 0: none.
func afterWrites(k int) lastWrite { return func(n int, _ string) bool { return n == k } }

func (k *killer) RoundTrip(request *http.Request) (*http.Response, error) {
	if k.isDead() {
		return nil, errKilled
	}
	response, err := k.next.RoundTrip(request)
	// Events are not state: the recorder writes them in its own time.
	if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") || err != nil || response.StatusCode >= 300 {
		return response, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return response, errKilled
	}
	write := request.Method + " " + request.URL.Path
	k.writes = append(k.writes, write)
	if k.last(len(k.writes), write) {
		k.dead = true
		k.kill()
		response.Body.Close()
		return nil, errKilled
	}
	return response, nil
}

func (k *killer) isDead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// startKilled runs a controller that is killed after its last write. It returns what ends it and its killer.
func (w *world) startKilled(last lastWrite) (stop func(), k *killer) {
	w.Helper()
	config := w.site.plane.Controller()
	config.QPS, config.Burst = 200, 400
	k = &killer{last: last}
	ctx, cancel := context.WithCancel(context.Background())
	k.kill = cancel
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		k.next = &forbiddenCounter{next, w}
		return k
	})
	mgr, err := app.New(config, w.options, w.clock)
	w.must(err)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		<-ended
	}, k
}

// procedure is something that the controller does for a user in many writes.
type procedure struct {
	// before brings about the state in which it begins, with a controller that nobody kills; nil: it begins from nothing.
	before func(w *world)
	// ask is what the user does.
	ask func(w *world)
	// end waits for the one state in which it ends.
	end func(w *world)
}

// killEach runs each procedure with the controller killed after its k-th write and started again, for each k. At no time has a
// volume of a user the policy Delete without a claim, or a claim of a user a mark of ours.
func killEach(t *testing.T, procedures map[string]procedure) {
	t.Helper()
	t.Parallel()
	for name, procedure := range procedures {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			writes, _ := procedure.run(newKillWorld(t), 0)
			t.Logf("%d writes", writes)
			for k := 1; k <= writes; k++ {
				t.Run(fmt.Sprintf("%02d", k), func(t *testing.T) {
					t.Parallel()
					procedure.kill(t, k, writes)
				})
			}
		})
	}
}

// How many writes a run makes depends on how often a state is seen before it changes. One that comes to its end whole with fewer
// than k shows nothing about k: another one is made. If none of them gets there, that is an error, unless k is among the last
// writes of the first run.
const (
	killTries = 3
	killSlack = 6
)

// kill runs the procedure until its controller was killed after the k-th write, each time in a world of its own that is gone before
// the next one. A run in which anything fails is not made again. The first run, in which nobody was killed, made so many writes.
func (p procedure) kill(t *testing.T, k, first int) {
	t.Helper()
	for try := 1; try <= killTries; try++ {
		var made int
		var killed bool
		passed := t.Run(fmt.Sprintf("try-%d", try), func(t *testing.T) { made, killed = p.run(newKillWorld(t), k) })
		switch {
		case !passed || killed:
			return
		case made >= k:
			t.Errorf("not killed after write %d of %d", k, made)
			return
		}
		t.Logf("run %d came to its end with %d writes; the first one made %d", try, made, first)
	}
	if k <= first-killSlack {
		t.Errorf("in %d runs there was no write %d to be killed after", killTries, k)
	}
}

func (p procedure) run(w *world, killAfter int) (writes int, killed bool) {
	w.Helper()
	if p.before != nil {
		w.startController()
		p.before(w)
		w.stop()
	}
	done := w.watchVolumes()
	k := w.startAgain(killAfter)
	p.ask(w)
	p.end(w)
	writes, killed = k.count(), k.isDead()
	done()
	w.removePods()
	return writes, killed
}

// newKillWorld is a world whose controller is not started yet.
func newKillWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, func(w *world) { w.idle = true })
}

// The same two resources, from nothing to the end of their first sync, with the controller killed after its k-th write and
// started again, for each k: all end in the same state. Each copy method is such a series.
func TestKilledAfterEachWrite(t *testing.T) {
	killEach(t, map[string]procedure{"Snapshot": cycle("Snapshot"), "Clone": cycle("Clone"), "Direct": cycle("Direct")})
}

// cycle is one whole cycle.
func cycle(method string) procedure {
	return procedure{
		ask: func(w *world) {
			w.write(filepath.Join(w.claim("data", "8Mi", corev1.PersistentVolumeFilesystem), "dir", "file"), 300_000)
			w.pair("p", "data", map[string]string{"copyMethod": method}, map[string]string{"copyMethod": method, "capacity": "8Mi"})
			w.ask("p", "a")
		},
		end: func(w *world) {
			w.served("p", "a")
			child := names.Destination(w.namespace, "p")
			w.eventually(60*time.Second, "the image and the next listener", func() bool {
				d := w.destination("p").Status
				job := &batchv1.Job{}
				err := w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: child}, job)
				return d.LatestImage != nil && d.PendingImage == nil && d.Phase == v1alpha1.DestinationListening &&
					reason(d.Conditions, v1alpha1.ConditionSynchronizing) == v1alpha1.ReasonListening && err == nil && len(job.Status.Conditions) == 0
			})
			w.checkEnd(method)
		},
	}
}

// startAgain runs a controller that is killed after its k-th write and then started again, once.
func (w *world) startAgain(killAfter int) *killer {
	w.Helper()
	stop, k := w.startKilled(afterWrites(killAfter))
	restarted := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(restarted)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if k.isDead() {
				stop()
				stop, _ = w.startKilled(afterWrites(0))
				return
			}
		}
	}()
	w.stop = func() { close(done); <-restarted; stop() }
	return k
}

func (k *killer) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.writes)
}

// checkEnd is the one state in which every cycle ends.
func (w *world) checkEnd(method string) {
	w.Helper()
	w.eventually(20*time.Second, "the Source to be at rest", func() bool { return w.source("p").Status.Phase == v1alpha1.SourceIdle })
	s, d := w.source("p"), w.destination("p")
	if s.Status.ActiveSync != nil || s.Status.Retry != nil || s.Status.Lineage == nil || s.Status.Lineage.Seq != 1 {
		w.Errorf("Source: %+v", s.Status)
	}
	if d.Status.LastReceived.Seq != 1 || len(d.Status.Images) != 1 || d.Status.Images[0].Seq != 1 || d.Status.Retry != nil {
		w.Errorf("Destination: %+v", d.Status)
	}
	if !same(w.path(w.namespace, "data"), w.staging("p")) {
		w.Error("the staging volume differs from the source")
	}
	w.nothingShown("data")
	if n := w.jobs(w.namespace); n != 0 {
		w.Errorf("%d Jobs are left beside the Source", n)
	}
	w.eventually(20*time.Second, "one image", func() bool {
		snapshots, claims := w.imagesInVault("p")
		return map[string]int{"Snapshot": 1, "Clone": 1, "Direct": 0}[method] == snapshots+claims
	})
	w.sourceVolumeRetained()
	for _, overlap := range nodeless.Overlaps(append(w.sourceRuns("p"), w.destinationRuns("p")...), nodeless.ByVolume) {
		w.Errorf("two movers at once on volume %s", overlap.First.Volume)
	}
}

// sourceVolumeRetained checks that the policy was changed and is remembered.
func (w *world) sourceVolumeRetained() {
	w.Helper()
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "data"}, claim))
	w.must(w.client.Get(w.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv))
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy] != "Delete" {
		w.Errorf("the source's volume has policy %s and remembers %q", pv.Spec.PersistentVolumeReclaimPolicy, pv.Annotations[v1alpha1.AnnotationOriginalReclaimPolicy])
	}
}
