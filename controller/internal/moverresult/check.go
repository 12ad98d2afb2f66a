// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
)

var (
	reasonPattern  = regexp.MustCompile(`^[A-Za-z]{0,64}$`)
	tokenPattern   = regexp.MustCompile(`^([0-9a-f]{12})?$`)
	versionPattern = regexp.MustCompile(`^[0-9A-Za-z.+_~-]{0,64}$`)
	epochPattern   = regexp.MustCompile(`^([0-9]{1,20}-[0-9A-Za-z-]{1,107})?$`)
)

func (w *wire) check() error {
	if w.Role != Source && w.Role != Destination {
		return errors.New("role is neither source nor destination")
	}
	if err := w.checkOutcome(); err != nil {
		return err
	}
	for name, n := range w.counts() {
		if n < 0 {
			return fmt.Errorf("%s is negative", name)
		}
	}
	if math.IsNaN(w.ElapsedS) || w.ElapsedS < 0 || w.ElapsedS > math.MaxInt64/1e9 {
		return errors.New("elapsed_s is out of range")
	}
	if w.Sessions != nil && *w.Sessions < 0 {
		return errors.New("sessions is negative")
	}
	if err := w.checkWords(); err != nil {
		return err
	}
	if w.Peer != nil {
		return w.Peer.check()
	}
	return nil
}

// checkOutcome holds the result word and the exit code against each other: the controller acts on the code, people read
// the word.
func (w *wire) checkOutcome() error {
	if w.ExitCode == nil || *w.ExitCode < 0 || *w.ExitCode > 255 {
		return errors.New("exit_code is missing or not from 0 to 255")
	}
	want := Failed
	switch *w.ExitCode {
	case exitOK:
		want = OK
	case exitItemsFailed, exitSourceChanged:
		want = Partial
	}
	if w.Result != want {
		return fmt.Errorf("result and exit_code %d disagree", *w.ExitCode)
	}
	return nil
}

func (w *wire) counts() map[string]int64 {
	return map[string]int64{
		"seq": w.Seq, "files_total": w.FilesTotal, "files_transferred": w.FilesTransferred, "bytes_total": w.BytesTotal,
		"literal_bytes": w.LiteralBytes, "matched_bytes": w.MatchedBytes, "zero_bytes": w.ZeroBytes,
		"wire_sent": w.WireSent, "wire_received": w.WireReceived, "error_count": w.ErrorCount, "owner_skipped": w.OwnerSkipped,
	}
}

func (w *wire) checkWords() error {
	switch {
	case !reasonPattern.MatchString(w.Reason):
		return errors.New("reason is not a word")
	case !plainWord(w.Attempt, maxWord) || !plainWord(w.FinalSyncID, maxWord):
		return errors.New("attempt or final_sync_id is too long or holds control characters")
	case !versionPattern.MatchString(w.EngineVersion) || !versionPattern.MatchString(w.Protocol):
		return errors.New("engine_version or protocol is not a version")
	case !tokenPattern.MatchString(w.Token):
		return errors.New("token is not 12 hex digits")
	}
	return nil
}

func (p *Identity) check() error {
	switch {
	case p.Seq < 0 || p.Size < 0:
		return errors.New("a number of the peer's identity is negative")
	case !epochPattern.MatchString(p.Epoch):
		return errors.New("the peer's epoch is not COUNTER-NONCE")
	case p.VolumeMode != "" && p.VolumeMode != "Filesystem" && p.VolumeMode != "Block":
		return errors.New("the peer's volume_mode is unknown")
	case !plainWord(p.Attempt, maxWord) || !plainWord(p.ReplicationID, maxWord) || !plainWord(p.FinalSyncID, maxWord) || !plainWord(p.SourceVolumeID, maxVolumeID):
		return errors.New("a name in the peer's identity is too long or holds control characters")
	}
	return nil
}

// plainWord accepts what the mover accepts of its peer: the same lengths, no control characters.
func plainWord(s string, most int) bool {
	return len(s) <= most && strings.IndexFunc(s, unicode.IsControl) < 0
}

// result takes over what was checked and cleans the two texts meant for people.
func (w *wire) result() *Result {
	return &Result{
		Role: w.Role, Outcome: w.Result, ExitCode: *w.ExitCode, Reason: w.Reason, Retryable: w.Retryable,
		Message: OneLine(w.Message, maxMessage), Seq: w.Seq, Attempt: w.Attempt, FinalSyncID: w.FinalSyncID,
		FilesTotal: w.FilesTotal, FilesTransferred: w.FilesTransferred,
		BytesTotal: w.BytesTotal, LiteralBytes: w.LiteralBytes, MatchedBytes: w.MatchedBytes, ZeroBytes: w.ZeroBytes,
		WireSent: w.WireSent, WireReceived: w.WireReceived, ErrorCount: w.ErrorCount, OwnerSkipped: w.OwnerSkipped, Sessions: w.Sessions,
		ElapsedSeconds: w.ElapsedS, EngineVersion: w.EngineVersion, Protocol: w.Protocol, Token: w.Token, Peer: w.Peer,
		LogTail: cleanTail(w.LogTail),
	}
}

// OneLine makes text fit for a condition or an event: control and other unprintable characters become spaces, and what
// is beyond most bytes is cut.
func OneLine(text string, most int) string {
	return cut(strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), most)
}

// cleanTail keeps line ends and tabs, and of a text that is too long its end.
func cleanTail(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(text) > maxLogTail {
		text = strings.ToValidUTF8(text[len(text)-maxLogTail:], "")
	}
	return text
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
