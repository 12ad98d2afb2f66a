// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Run is the record of one container that was started, or that a hook let end without a start.
type Run struct {
	Namespace, Pod string
	UID            types.UID
	// Job is the name of the Job that the pod belongs to, or "".
	Job    string
	Labels map[string]string
	// Command is what was executed; empty where a hook skipped it.
	Command     []string
	Environment map[string]string
	// Volume is the handle of the first claim's volume, ReadOnly whether the pod asked for it so.
	Volume   string
	ReadOnly bool
	PodIP    string
	// Output and Errors are the files with what the program printed.
	Output, Errors string
	Start          time.Time
	// End is zero while the container runs; ExitCode and Message are meaningful afterwards.
	End      time.Time
	ExitCode int32
	Message  string
}

// Running says whether the run has not ended yet.
func (r *Run) Running() bool { return r.End.IsZero() }

// journal keeps the runs in the order of their starts.
type journal struct {
	mutex sync.Mutex
	runs  []*Run
}

func (j *journal) add(run Run) *Run {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	kept := run
	j.runs = append(j.runs, &kept)
	return &kept
}

func (j *journal) finish(run *Run, end time.Time, exitCode int32, message string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	run.End, run.ExitCode, run.Message = end, exitCode, message
}

func (j *journal) all() []Run {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	copies := make([]Run, 0, len(j.runs))
	for _, run := range j.runs {
		one := *run
		one.Labels, one.Environment = maps.Clone(run.Labels), maps.Clone(run.Environment)
		copies = append(copies, one)
	}
	return copies
}

// Runs gives copies of all runs so far, in the order of their starts.
func (n *Node) Runs() []Run { return n.journal.all() }

// Overlap is two runs that went on at the same time.
type Overlap struct{ First, Second Run }

// ByVolume groups runs by the volume they worked on.
func ByVolume(run Run) string { return run.Volume }

// ByLabel groups runs by the value of a label; runs without it belong to no group.
func ByLabel(name string) func(Run) string {
	return func(run Run) string { return run.Labels[name] }
}

// Overlaps finds runs of one group that were not one after the other. A group of "" is left out.
func Overlaps(runs []Run, group func(Run) string) []Overlap {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
	var found []Overlap
	for index, first := range runs {
		for _, second := range runs[index+1:] {
			if group(first) == "" || group(first) != group(second) {
				continue
			}
			if first.Running() || second.Start.Before(first.End) {
				found = append(found, Overlap{first, second})
			}
		}
	}
	return found
}
