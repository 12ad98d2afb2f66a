// SPDX-License-Identifier: Apache-2.0

package params

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Transfer is what the controller knows about the transfer a mover is to make or to wait for.
type Transfer struct {
	ReplicationID string
	// Epoch is COUNTER-NONCE.
	Epoch string
	// Seq of this transfer (source), or of the last completed one (destination).
	Seq int64
	// Attempt is the same uuid for every retry of one Seq: of this transfer (source), or of the last completed one.
	Attempt        string
	SourceVolumeID string
	// VolumeSize in bytes, as the claim says; 0: unknown.
	VolumeSize  int64
	FinalSyncID string
	// Acknowledge are the tokens of conflicts that are permitted.
	Acknowledge []string
}

// The least and the default of the mover's own memory bound, in bytes.
const (
	leastMemory   = 32 << 20
	defaultMemory = 512 << 20
)

// environment collects variables in a fixed order, without those that have the mover's default.
type environment []corev1.EnvVar

// add escapes dollar signs, since kubelet expands $(NAME) in values.
func (e *environment) add(name, value string) {
	if value != "" {
		*e = append(*e, corev1.EnvVar{Name: "VOLFERRY_" + name, Value: strings.ReplaceAll(value, "$", "$$")})
	}
}

func (e *environment) addInt(name string, value int64) {
	if value != 0 {
		e.add(name, strconv.FormatInt(value, 10))
	}
}

// MoverEnv is the environment of a source mover, as docs/mover.md describes it. What is not set has the mover's default.
func (p *SourceParams) MoverEnv(t Transfer) []corev1.EnvVar {
	var e environment
	e.add("ADDRESS", p.Address)
	e.addInt("PORT", int64(p.Port))
	e.addTransfer(t)
	e.add("FINAL_SYNC_ID", t.FinalSyncID)
	e.add("COMPRESSION", p.Compression)
	e.addInt("BANDWIDTH_LIMIT", p.BandwidthLimit)
	e.addInt("STREAMS", int64(p.Streams))
	e.add("DELETE", strconv.FormatBool(p.Delete))
	e.add("PRESERVE", strings.Join(p.Preserve, ","))
	e.add("EXCLUDE", strings.Join(p.Exclude, "\n"))
	e.add("VERIFY", p.Verify)
	e.add("RETRIES", strconv.Itoa(p.Retries))
	e.addInt("CONNECT_TIMEOUT", int64(p.ConnectTimeout/time.Second))
	e.addInt("SYNC_TIMEOUT", int64(p.SyncTimeout/time.Second))
	e.addMemory(p.MoverResources)
	return e
}

// MoverEnv is the environment of a destination mover. It always listens on its default port; the Service maps to that.
func (p *DestinationParams) MoverEnv(t Transfer) []corev1.EnvVar {
	var e environment
	e.addTransfer(t)
	e.addMemory(p.MoverResources)
	return e
}

func (e *environment) addTransfer(t Transfer) {
	e.add("REPLICATION_ID", t.ReplicationID)
	e.add("EPOCH", t.Epoch)
	e.add("SEQ", strconv.FormatInt(t.Seq, 10))
	e.add("ATTEMPT", t.Attempt)
	e.add("ACKNOWLEDGE", strings.Join(t.Acknowledge, ","))
	e.add("SOURCE_VOLUME_ID", t.SourceVolumeID)
	e.addInt("VOLUME_SIZE", t.VolumeSize)
}

// addMemory keeps the mover's buffers to half of the container's memory limit, so that a small limit does not end in an
// out-of-memory kill: the other half is for the program, its tables and the kernel's page cache for dirty pages.
func (e *environment) addMemory(resources *corev1.ResourceRequirements) {
	if resources == nil {
		return
	}
	limit, limited := resources.Limits[corev1.ResourceMemory]
	if half := limit.Value() / 2; limited && half < defaultMemory {
		e.addInt("MEMORY", max(half, leastMemory))
	}
}
