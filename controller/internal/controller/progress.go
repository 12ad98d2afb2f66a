// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"volferry.io/controller/internal/moverresult"
)

// progressShown remembers when the progress of a resource was shown last: pods change more often than people read.
type progressShown struct{ last sync.Map } // types.UID of the Source or Destination -> time.Time

// due tells whether it is time to show it again, and takes that for done.
func (p *progressShown) due(owner types.UID, now time.Time) bool {
	if last, there := p.last.Load(owner); there && now.Sub(last.(time.Time)) < progressPoll {
		return false
	}
	p.last.Store(owner, now)
	return true
}

func (p *progressShown) forget(owner types.UID) { p.last.Delete(owner) }

// showProgress asks a running mover how far it is and shows that in a methodStatus. The mover is asked over HTTP and not
// through the pod's log: reading logs would take a right that also shows every other container's output. A mover that
// cannot be asked is no reason for anything.
func (b *base) showProgress(ctx context.Context, mover moverJob, methodStatus map[string]string) map[string]string {
	progress, err := b.Progress.Fetch(ctx, mover.pod.Status.PodIP)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("no progress to be had", "pod", mover.pod.Name, "error", err.Error())
		return methodStatus
	}
	if progress == nil {
		return withoutProgress(methodStatus)
	}
	shown := withoutProgress(methodStatus)
	maps.Copy(shown, progress.MethodStatus())
	return shown
}

// withoutProgress is a methodStatus without what only a running mover has. It is never nil.
func withoutProgress(methodStatus map[string]string) map[string]string {
	rest := maps.Clone(methodStatus)
	if rest == nil {
		rest = map[string]string{}
	}
	for _, key := range moverresult.ProgressKeys() {
		delete(rest, key)
	}
	return rest
}
