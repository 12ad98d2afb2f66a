// SPDX-License-Identifier: Apache-2.0

package params

import (
	"slices"
	"strings"
)

// unknown describes a parameter that the kind does not have, with a hint at what was probably meant.
func unknown(key, kind string) *Error {
	mine, others, other := SourceKeys(), DestinationKeys(), kindDestination
	if kind == kindDestination {
		mine, others, other = others, mine, kindSource
	}
	detail := "a " + kind + " has no such parameter"
	switch near := nearest(key, mine); {
	case slices.Contains(others, key):
		detail = "belongs to a " + other + ", a " + kind + " has no such parameter"
	case key == "moverImage" || key == "moverCommand":
		detail = "the mover's image and command are set for the whole controller, not by parameters"
	case near != "":
		detail += "; did you mean " + near + "?"
	}
	return &Error{Reason: ReasonUnknownParameter, Key: Scrub(quoteKey(key)), Detail: detail}
}

// quoteKey shows a parameter's name plainly where it is a plain word.
func quoteKey(key string) string {
	plain := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	if key != "" && len(key) <= quoteLimit && strings.IndexFunc(key, func(r rune) bool { return !plain(r) }) < 0 {
		return key
	}
	return quote(key)
}

// nearest finds the known key that differs from key in at most a third of its letters; empty if there is none.
func nearest(key string, known []string) string {
	if len(key) > quoteLimit {
		return ""
	}
	best, bestDistance := "", len(key)/3+1
	for _, candidate := range known {
		if d := editDistance(strings.ToLower(key), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements that turn a into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
