// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// line is a valid result with changes; a change to nil removes the field.
func line(t *testing.T, changes map[string]any) string {
	t.Helper()
	fields := map[string]any{
		"event": "result", "version": 1, "role": "source", "result": "ok", "exit_code": 0, "reason": "", "retryable": false,
		"message": "", "seq": 7, "attempt": "0b7f6d1e-5d52-4a55-9a36-0a3c9e8a2a11", "final_sync_id": "move-1",
		"files_total": 3, "files_transferred": 2, "bytes_total": 100, "literal_bytes": 60, "matched_bytes": 30, "zero_bytes": 10,
		"wire_sent": 61, "wire_received": 5, "elapsed_s": 1.5, "error_count": 0, "owner_skipped": 1,
		"engine_version": "0.1.0", "protocol": "1.0", "token": "", "log_tail": "one\ntwo",
		"peer": map[string]any{"v": 1, "epoch": "2-abcd", "seq": 6, "volume_mode": "Block", "size": 4096, "source_volume_id": "vol"},
	}
	maps.Copy(fields, changes)
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse(t *testing.T) {
	got, err := Parse("a log line\n" + line(t, nil) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.Role != Source || got.Outcome != OK || got.Seq != 7 || got.FinalSyncID != "move-1" || got.MatchedBytes != 30 ||
		got.ElapsedSeconds != 1.5 || got.OwnerSkipped != 1 || got.LogTail != "one\ntwo" || got.WireSent != 61 {
		t.Errorf("got %+v", got)
	}
	if got.Peer == nil || got.Peer.Epoch != "2-abcd" || got.Peer.Size != 4096 || got.Peer.VolumeMode != "Block" {
		t.Errorf("peer: %+v", got.Peer)
	}
}

func TestParseTakesTheLastResult(t *testing.T) {
	first, last := line(t, map[string]any{"seq": 1}), line(t, map[string]any{"seq": 2})
	got, err := Parse(first + "\n" + last + "\n{\"event\":\"progress\"}\n{broken\nkubelet's own words")
	if err != nil || got.Seq != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		changes map[string]any
		want    error
	}{
		"other event":       {map[string]any{"event": "summary"}, ErrNoResult},
		"newer version":     {map[string]any{"version": 2, "role": 5}, ErrVersion},
		"no version":        {map[string]any{"version": nil}, ErrVersion},
		"role":              {map[string]any{"role": "both"}, ErrInvalid},
		"no code":           {map[string]any{"exit_code": nil}, ErrInvalid},
		"code too high":     {map[string]any{"exit_code": 256, "result": "failed"}, ErrInvalid},
		"ok with code":      {map[string]any{"exit_code": 13}, ErrInvalid},
		"failed without":    {map[string]any{"result": "failed"}, ErrInvalid},
		"partial elsewhere": {map[string]any{"result": "partial", "exit_code": 20}, ErrInvalid},
		"negative":          {map[string]any{"wire_sent": -1}, ErrInvalid},
		"fraction":          {map[string]any{"seq": 1.5}, ErrInvalid},
		"above 64 bits":     {map[string]any{"bytes_total": 1e30}, ErrInvalid},
		"elapsed":           {map[string]any{"elapsed_s": 1e300}, ErrInvalid},
		"wrong type":        {map[string]any{"seq": "7"}, ErrInvalid},
		"reason":            {map[string]any{"reason": "two words"}, ErrInvalid},
		"attempt":           {map[string]any{"attempt": "a\nb"}, ErrInvalid},
		"token":             {map[string]any{"token": "ABCDEFABCDEF"}, ErrInvalid},
		"version text":      {map[string]any{"engine_version": "0.1 <b>"}, ErrInvalid},
		"final sync id":     {map[string]any{"final_sync_id": strings.Repeat("x", 65)}, ErrInvalid},
		"peer size":         {map[string]any{"peer": map[string]any{"size": -5}}, ErrInvalid},
		"peer epoch":        {map[string]any{"peer": map[string]any{"epoch": "new"}}, ErrInvalid},
		"peer mode":         {map[string]any{"peer": map[string]any{"volume_mode": "Tape"}}, ErrInvalid},
		"peer name":         {map[string]any{"peer": map[string]any{"source_volume_id": "a\u0007b"}}, ErrInvalid},
		"peer no object":    {map[string]any{"peer": "x"}, ErrInvalid},
		"too long":          {map[string]any{"log_tail": strings.Repeat("x", MaxLine)}, ErrInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Parse(line(t, tc.changes)); !errors.Is(err, tc.want) {
				t.Errorf("got %+v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestParseGarbage(t *testing.T) {
	valid := line(t, nil)
	for i := range valid {
		if got, err := Parse(valid[:i]); err == nil {
			t.Fatalf("cut after %d bytes: %+v", i, got)
		}
	}
	for _, text := range []string{"", "\n\n", "null", "{}", "[1]", "\x00\xff\xfe", strings.Repeat("{", 4000), strings.Repeat("\n", 1<<20)} {
		if _, err := Parse(text); !errors.Is(err, ErrNoResult) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if got, err := Parse(strings.Repeat("x", 1<<20) + "\n" + valid); err != nil || got.Seq != 7 {
		t.Errorf("after a megabyte: %+v, %v", got, err)
	}
}

func TestErrorsRepeatNothing(t *testing.T) {
	for _, field := range []string{"reason", "attempt", "token", "role", "final_sync_id", "seq"} {
		_, err := Parse(line(t, map[string]any{field: "INJECTED\n" + strings.Repeat("y", 80)}))
		if err == nil || strings.Contains(err.Error(), "INJECTED") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestTextsAreCleaned(t *testing.T) {
	got, err := Parse(line(t, map[string]any{
		"message":  "a\nb\x1b[31m" + strings.Repeat("é", 400),
		"log_tail": "\x1b[2J" + strings.Repeat("ü", 600) + "\nend",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Message) > maxMessage || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\x1b") ||
		!strings.HasPrefix(got.Message, "a b [31m") {
		t.Errorf("message %q", got.Message)
	}
	if len(got.LogTail) > maxLogTail || !utf8.ValidString(got.LogTail) || !strings.HasSuffix(got.LogTail, "ü\nend") {
		t.Errorf("log tail %q", got.LogTail)
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	if _, err := Parse(line(t, map[string]any{"later": []int{1}, "peer": nil})); err != nil {
		t.Error(err)
	}
}

// How many sessions there were is known only where the mover says so.
func TestSessions(t *testing.T) {
	for value, want := range map[any]int64{nil: -1, 0: 0, 3: 3} {
		got, err := Parse(line(t, map[string]any{"sessions": value}))
		if err != nil || (got.Sessions == nil) != (want < 0) || got.Sessions != nil && *got.Sessions != want {
			t.Errorf("sessions %v: %v, %v", value, got, err)
		}
	}
	if _, err := Parse(line(t, map[string]any{"sessions": -1})); err == nil {
		t.Error("a negative number is taken")
	}
}

// The samples in docs/ are those that the mover's own tests hold it to; those in testdata/ add other outcomes.
func TestSamples(t *testing.T) {
	shared := files(t, "../../../docs/samples/mover/result.*.json")
	for _, file := range append(shared, files(t, "testdata/result.*.json")...) {
		got, err := Parse(read(t, file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if word := strings.Split(filepath.Base(file), ".")[1]; !strings.HasPrefix(word, string(got.Outcome)) {
			t.Errorf("%s: outcome %s", file, got.Outcome)
		}
		if ReasonOf(got.ExitCode) != got.Reason || got.Outcome == Failed && got.Retryable == Permanent(got.ExitCode) {
			t.Errorf("%s: reason %s, retryable %v, but exit code %d means %s", file, got.Reason, got.Retryable, got.ExitCode, ReasonOf(got.ExitCode))
		}
	}
}

func TestSharedProgressSample(t *testing.T) {
	got, err := ParseProgress([]byte(read(t, "../../../docs/samples/mover/progress.json")))
	if err != nil || got.MethodStatus()[KeyProgressPercent] != "20%" || got.MethodStatus()[KeyProgressETA] != "8s" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no samples %s: %v", pattern, err)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func FuzzParse(f *testing.F) {
	f.Add(`{"event":"result","version":1,"role":"source","result":"ok","exit_code":0}`)
	f.Add(`{"event":"result","version":1,"role":"source","result":"failed","exit_code":30,"peer":{"seq":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if (got == nil) == (err == nil) {
			t.Fatalf("%v, %v", got, err)
		}
		if got != nil && (len(got.Message) > maxMessage || len(got.LogTail) > maxLogTail || got.Seq < 0) {
			t.Fatalf("beyond the limits: %+v", got)
		}
	})
}
