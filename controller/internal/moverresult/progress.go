// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Progress is how far a running mover has come. Totals grow until TotalKnown.
type Progress struct {
	// Phase is the mover's word: connect, sync, delete, verify or flush.
	Phase                 string
	TotalKnown            bool
	FilesDone, FilesTotal int64
	BytesDone, BytesTotal int64
	BytesPerSecond        float64
	// ETA is nil while it cannot be told.
	ETA *time.Duration
}

var phasePattern = regexp.MustCompile(`^[a-z_-]{1,32}$`)

// maxETA bounds a time that is shown: anything longer is as good as unknown.
const maxETA = 366 * 24 * time.Hour

// ParseProgress reads a progress object; the error repeats nothing of it.
func ParseProgress(body []byte) (*Progress, error) {
	var w struct {
		Event      string   `json:"event"`
		Phase      string   `json:"phase"`
		TotalKnown bool     `json:"total_known"`
		FilesDone  int64    `json:"files_done"`
		FilesTotal int64    `json:"files_total"`
		BytesDone  int64    `json:"bytes_done"`
		BytesTotal int64    `json:"bytes_total"`
		PerSecond  float64  `json:"bytes_per_s"`
		ETA        *float64 `json:"eta_s"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, errors.New("the progress is not JSON of the right types")
	}
	if w.Event != "progress" || !phasePattern.MatchString(w.Phase) {
		return nil, errors.New("the answer is not a progress object")
	}
	if w.FilesDone < 0 || w.FilesTotal < 0 || w.BytesDone < 0 || w.BytesTotal < 0 || w.PerSecond < 0 || math.IsInf(w.PerSecond, 0) {
		return nil, errors.New("a number of the progress is out of range")
	}
	p := &Progress{
		Phase: w.Phase, TotalKnown: w.TotalKnown, FilesDone: w.FilesDone, FilesTotal: w.FilesTotal,
		BytesDone: w.BytesDone, BytesTotal: w.BytesTotal, BytesPerSecond: w.PerSecond,
	}
	if w.ETA != nil && *w.ETA >= 0 && *w.ETA < maxETA.Seconds() {
		eta := time.Duration(*w.ETA * float64(time.Second)).Round(time.Second)
		p.ETA = &eta
	}
	return p, nil
}

// Keys of methodStatus that show progress while a mover runs, and are removed at its end.
const (
	KeyProgressPhase   = "progressPhase"
	KeyProgressBytes   = "progressBytes"
	KeyProgressPercent = "progressPercent"
	KeyProgressRate    = "progressRate"
	KeyProgressETA     = "progressETA"
)

// ProgressKeys lists them.
func ProgressKeys() []string {
	return []string{KeyProgressPhase, KeyProgressBytes, KeyProgressPercent, KeyProgressRate, KeyProgressETA}
}

// MethodStatus shows progress as methodStatus does. What is not known is not there: percent and ETA need the total.
func (p *Progress) MethodStatus() map[string]string {
	m := map[string]string{
		KeyProgressPhase: p.Phase,
		KeyProgressBytes: strconv.FormatInt(p.BytesDone, 10),
		KeyProgressRate:  formatRate(p.BytesPerSecond),
	}
	if !p.TotalKnown {
		return m
	}
	m[KeyProgressBytes] = fmt.Sprintf("%d of %d", p.BytesDone, p.BytesTotal)
	m[KeyProgressPercent] = strconv.Itoa(p.percent()) + "%"
	if p.ETA != nil {
		m[KeyProgressETA] = p.ETA.String()
	}
	return m
}

// percent is rounded down, so that 100 is shown only when all bytes are done.
func (p *Progress) percent() int {
	if p.BytesDone >= p.BytesTotal {
		return 100
	}
	return min(99, int(float64(p.BytesDone)/float64(p.BytesTotal)*100))
}

func formatRate(perSecond float64) string {
	units := []string{"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"}
	unit := 0
	for perSecond >= 1024 && unit < len(units)-1 {
		perSecond /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%.0f %s", perSecond, units[unit])
	}
	return fmt.Sprintf("%.1f %s", perSecond, units[unit])
}
