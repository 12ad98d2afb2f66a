// SPDX-License-Identifier: Apache-2.0

// Package moverresult reads what a mover tells about itself: the result line in its termination message, its exit code
// and its progress. All of it comes from a process that talks to strangers, so everything is checked for length, range
// and characters before it reaches a status, an event or a log. docs/mover.md describes the formats.
package moverresult

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Limits of the result line and its texts, in bytes.
const (
	MaxLine     = 4096
	maxMessage  = 512
	maxLogTail  = 1024
	maxWord     = 64
	maxVolumeID = 256
	// maxInput is how much of the end of a termination message is looked at; kubelet keeps 4 KiB itself.
	maxInput = 64 << 10
)

// Version of the result line that is understood.
const Version = 1

// Outcome is how a mover's run ended.
type Outcome string

// Outcomes. Partial is exit code 3 or 4.
const (
	OK      Outcome = "ok"
	Partial Outcome = "partial"
	Failed  Outcome = "failed"
)

// Role is which end a mover was.
type Role string

// Roles.
const (
	Source      Role = "source"
	Destination Role = "destination"
)

// Result is the outcome of one mover. Counts and sizes are never negative; sizes are in bytes.
type Result struct {
	Role     Role
	Outcome  Outcome
	ExitCode int
	// Reason is the engine's word for the failure, empty when Outcome is OK.
	Reason    string
	Retryable bool
	// Message is one line, without control characters.
	Message string
	// Seq, Attempt and FinalSyncID are those of the transfer; on a destination as the peer named them.
	Seq         int64
	Attempt     string
	FinalSyncID string

	FilesTotal, FilesTransferred                      int64
	BytesTotal, LiteralBytes, MatchedBytes, ZeroBytes int64
	WireSent, WireReceived                            int64
	ErrorCount, OwnerSkipped                          int64
	// Sessions that passed the identity check; nil where the mover does not tell. A destination with none wrote nothing.
	Sessions                *int64
	ElapsedSeconds          float64
	EngineVersion, Protocol string
	// Token permits the conflict that was refused, once acknowledged: 12 hex digits or empty.
	Token string
	// Peer is how the other end introduced itself; nil if it did not.
	Peer *Identity
	// LogTail is the end of the log: several lines, no other control characters.
	LogTail string
}

// Identity is one end's description of itself.
type Identity struct {
	ReplicationID  string `json:"replication_id"`
	Epoch          string `json:"epoch"`
	Seq            int64  `json:"seq"`
	Attempt        string `json:"attempt"`
	VolumeMode     string `json:"volume_mode"`
	Size           int64  `json:"size"`
	SourceVolumeID string `json:"source_volume_id"`
	FinalSyncID    string `json:"final_sync_id"`
}

// Errors of Parse. Where there is no result, FromExit makes one of the container's state.
var (
	ErrNoResult = errors.New("the mover left no result")
	ErrVersion  = errors.New("the mover's result is of a version that is not understood")
	ErrInvalid  = errors.New("the mover's result is not valid")
)

// wire is the line as it is written.
type wire struct {
	Event            string    `json:"event"`
	Version          int       `json:"version"`
	Role             Role      `json:"role"`
	Result           Outcome   `json:"result"`
	ExitCode         *int      `json:"exit_code"`
	Reason           string    `json:"reason"`
	Retryable        bool      `json:"retryable"`
	Message          string    `json:"message"`
	Seq              int64     `json:"seq"`
	Attempt          string    `json:"attempt"`
	FinalSyncID      string    `json:"final_sync_id"`
	FilesTotal       int64     `json:"files_total"`
	FilesTransferred int64     `json:"files_transferred"`
	BytesTotal       int64     `json:"bytes_total"`
	LiteralBytes     int64     `json:"literal_bytes"`
	MatchedBytes     int64     `json:"matched_bytes"`
	ZeroBytes        int64     `json:"zero_bytes"`
	WireSent         int64     `json:"wire_sent"`
	WireReceived     int64     `json:"wire_received"`
	ElapsedS         float64   `json:"elapsed_s"`
	ErrorCount       int64     `json:"error_count"`
	OwnerSkipped     int64     `json:"owner_skipped"`
	Sessions         *int64    `json:"sessions"`
	EngineVersion    string    `json:"engine_version"`
	Protocol         string    `json:"protocol"`
	Token            string    `json:"token"`
	Peer             *Identity `json:"peer"`
	LogTail          string    `json:"log_tail"`
}

// Parse finds the result in a termination message: the last line that is a result object. Lines before and after it are
// skipped, since a container may add its own. The error wraps ErrNoResult, ErrVersion or ErrInvalid and repeats nothing
// of the message.
func Parse(message string) (*Result, error) {
	if len(message) > maxInput {
		message = message[len(message)-maxInput:]
	}
	lines := strings.Split(message, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if len(line) > MaxLine {
			return nil, fmt.Errorf("%w: a line has %d bytes, at most %d are allowed", ErrInvalid, len(line), MaxLine)
		}
		result, err := parseLine(line)
		if errors.Is(err, ErrNoResult) {
			continue
		}
		return result, err
	}
	return nil, ErrNoResult
}

func parseLine(line string) (*Result, error) {
	var kind struct {
		Event   string `json:"event"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal([]byte(line), &kind); err != nil {
		// Most often a line that was cut: there is no result to be had from it.
		return nil, ErrNoResult
	}
	if kind.Event != "result" {
		return nil, ErrNoResult
	}
	if kind.Version != Version {
		return nil, fmt.Errorf("%w: %d", ErrVersion, kind.Version)
	}
	var w wire
	if err := json.Unmarshal([]byte(line), &w); err != nil {
		return nil, fmt.Errorf("%w: a field has the wrong type or is out of range", ErrInvalid)
	}
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return w.result(), nil
}
