// SPDX-License-Identifier: Apache-2.0

package params

import (
	"fmt"
	"regexp"
	"strings"
)

// Reasons of an Error, as they appear in condition Accepted.
const (
	ReasonUnknownParameter = "UnknownParameter"
	ReasonInvalidParameter = "InvalidParameter"
)

// Error is a parameter that cannot be used. Its text is one sentence fit for a condition: it names the parameter and never
// holds a key.
type Error struct {
	// Reason is ReasonUnknownParameter or ReasonInvalidParameter.
	Reason string
	// Key is the parameter's name, scrubbed.
	Key string
	// Detail says what is wrong.
	Detail string
}

func (e *Error) Error() string { return "parameter " + e.Key + ": " + e.Detail }

func invalid(key, format string, args ...any) *Error {
	return &Error{Reason: ReasonInvalidParameter, Key: Scrub(key), Detail: Scrub(fmt.Sprintf(format, args...))}
}

const redacted = "[looks like a key, not shown]"

// A PEM block, a run of hex digits as long as the shortest key, or a run of base64 as long as 30 bytes make.
var keyLike = regexp.MustCompile(`(?s)-----BEGIN.*|[0-9A-Fa-f]{32,}|[0-9A-Za-z+/_=]{40,}`)

// Scrub replaces whatever in text looks like a key.
func Scrub(text string) string { return keyLike.ReplaceAllString(text, redacted) }

// quoteLimit keeps a message readable where the value is long.
const quoteLimit = 64

// quote shows a value in a message: scrubbed, on one line, cut where it is long.
func quote(value string) string {
	shown := Scrub(value)
	if len(shown) > quoteLimit {
		shown = strings.ToValidUTF8(shown[:quoteLimit], "") + "..."
	}
	return fmt.Sprintf("%q", shown)
}
