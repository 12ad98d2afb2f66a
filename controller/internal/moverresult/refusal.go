// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Refusal is why a mover that goes on listening has refused its last peer; see docs/mover.md.
type Refusal struct {
	// Reason is the mover's word: that of a conflict, or ProtocolMismatch.
	Reason string
	// Message is one line for a person, with the token that permits the conflict if there is one.
	Message string
}

// ReasonProtocolMismatch is a mover's word for a peer that speaks another version, or nothing of ours.
const ReasonProtocolMismatch = "ProtocolMismatch"

// maxRefusal bounds what a tenant's pod can put into a condition.
const maxRefusal = 1024

// ParseRefusal reads a refusal object; the error repeats nothing of it.
func ParseRefusal(body []byte) (*Refusal, error) {
	var w struct {
		Event   string `json:"event"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, errors.New("the refusal is not JSON of the right types")
	}
	if w.Event != "refusal" || !reasonPattern.MatchString(w.Reason) || w.Message == "" {
		return nil, errors.New("the answer is not a refusal object")
	}
	if len(w.Message) > maxRefusal || strings.ContainsFunc(w.Message, func(r rune) bool { return r < ' ' || r == utf8.RuneError }) {
		return nil, errors.New("the message of the refusal is not one short line")
	}
	return &Refusal{Reason: w.Reason, Message: w.Message}, nil
}
