// SPDX-License-Identifier: Apache-2.0

package moverresult

import "fmt"

// The mover's exit codes that the controller distinguishes; docs/cli.md has all of them.
const (
	exitOK                  = 0
	exitInternal            = 1
	ExitUsage               = 2
	exitItemsFailed         = 3
	exitSourceChanged       = 4
	exitConnect             = 10
	exitAuth                = 11
	exitProtocol            = 12
	exitConnectionLost      = 13
	exitDestinationFull     = 20
	exitDestinationWrite    = 21
	exitSourceRead          = 22
	exitDestinationTooSmall = 23
	exitDifferences         = 24
	ExitIdentity            = 30
	exitInterrupted         = 130
	exitKilled              = 137
	exitTerminated          = 143
)

// outcome describes one exit code.
type outcome struct {
	reason    string
	permanent bool
	sentence  string
}

var outcomes = map[int]outcome{
	exitOK:                  {"", false, "The transfer is complete."},
	exitInternal:            {"InternalError", false, "The mover failed by an error of its own."},
	ExitUsage:               {"Usage", true, "The mover refused its settings."},
	exitItemsFailed:         {"ItemsFailed", false, "Some files could not be transferred; all others were."},
	exitSourceChanged:       {"SourceChanged", false, "The transfer is complete, but some files vanished or changed while they were read."},
	exitConnect:             {"CannotConnect", false, "The peer could not be reached."},
	exitAuth:                {"AuthenticationRefused", true, "The key was refused: both ends need the same one."},
	exitProtocol:            {ReasonProtocolMismatch, true, "The two ends speak different versions of the protocol."},
	exitConnectionLost:      {"ConnectionLost", false, "The connection was lost before the transfer was complete."},
	exitDestinationFull:     {"DestinationFull", true, "The destination volume is full."},
	exitDestinationWrite:    {"DestinationWriteError", false, "The destination volume could not be written."},
	exitSourceRead:          {"SourceReadError", false, "The source volume could not be read."},
	exitDestinationTooSmall: {"DestinationTooSmall", true, "The destination volume is smaller than the source."},
	exitDifferences:         {"DifferencesFound", false, "Source and destination differ after the transfer."},
	ExitIdentity:            {"IdentityRefused", true, "The identity check refused the peer."},
	exitInterrupted:         {"Interrupted", false, "The mover was interrupted."},
	exitKilled:              {"Killed", false, "The mover was killed, most often because it was out of memory or its node went away."},
	exitTerminated:          {"Interrupted", false, "The mover was stopped before the transfer was complete."},
}

// PermanentExitCodes are those that a retry cannot cure, sorted: the Job's podFailurePolicy lists them.
func PermanentExitCodes() []int32 {
	var codes []int32
	for code := range 256 {
		if Permanent(code) {
			codes = append(codes, int32(code))
		}
	}
	return codes
}

// Permanent tells whether a retry cannot help; an unknown code is taken for transient.
func Permanent(exitCode int) bool { return outcomes[exitCode].permanent }

// Complete tells whether the transfer counts as done: code 4 does, with a warning.
func Complete(exitCode int) bool { return exitCode == exitOK || exitCode == exitSourceChanged }

// ReasonOf is the engine's word for an exit code, ExitCodeN for one that the mover does not use.
func ReasonOf(exitCode int) string {
	if o, known := outcomes[exitCode]; known {
		return o.reason
	}
	return fmt.Sprintf("ExitCode%d", exitCode)
}

// Explain is a sentence for people about an exit code.
func Explain(exitCode int) string {
	if o, known := outcomes[exitCode]; known {
		return o.sentence
	}
	return fmt.Sprintf("The mover ended with exit code %d.", exitCode)
}

// Summary is what a condition or an event says about the result: the explanation, then the mover's own words.
func (r *Result) Summary() string {
	summary := Explain(r.ExitCode)
	if r.Message != "" {
		summary += " " + r.Message
	}
	return summary
}

// FromExit makes a result of what kubelet knows where the mover left none: its exit code and the container's reason
// (OOMKilled, Error, ..), which may be empty.
func FromExit(role Role, exitCode int, containerReason string) *Result {
	r := &Result{Role: role, Outcome: Failed, ExitCode: exitCode, Reason: ReasonOf(exitCode), Retryable: !Permanent(exitCode)}
	// Success is never concluded from the code alone: without the line nobody knows what was transferred.
	if Complete(exitCode) {
		r.ExitCode, r.Reason, r.Retryable = exitInternal, ReasonOf(exitInternal), true
		r.Message = fmt.Sprintf("it ended with exit code %d but left no result", exitCode)
		return r
	}
	r.Message = "it left no result"
	if containerReason != "" {
		r.Message = "it left no result; the container's state is " + OneLine(containerReason, maxWord)
	}
	return r
}
