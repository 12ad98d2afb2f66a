// SPDX-License-Identifier: Apache-2.0

package params

import (
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

func parseName(key, value string) (string, *Error) {
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		return "", invalid(key, "%s is not an object's name", quote(value))
	}
	return value, nil
}

func parseInt(key, value string, least, most int64) (int64, *Error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid(key, "%s is not a number from %d to %d", quote(value), least, most)
	}
	return n, nil
}

func parseBool(key, value string) (bool, *Error) {
	switch value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid(key, "%s is neither true nor false", quote(value))
}

// parseChoice accepts one of the words and answers with it.
func parseChoice(key, value string, words ...string) (string, *Error) {
	for _, word := range words {
		if value == word {
			return word, nil
		}
	}
	return "", invalid(key, "%s is not one of %s", quote(value), strings.Join(words, ", "))
}

// parseCSV splits at commas and accepts the words only, each once.
func parseCSV(key, value string, words ...string) ([]string, *Error) {
	var list []string
	for item := range strings.SplitSeq(value, ",") {
		word, err := parseChoice(key, strings.TrimSpace(item), words...)
		if err != nil {
			return nil, err
		}
		for _, have := range list {
			if have == word {
				return nil, invalid(key, "%s is listed twice", word)
			}
		}
		list = append(list, word)
	}
	return list, nil
}

func parseAccessModes(key, value string) ([]corev1.PersistentVolumeAccessMode, *Error) {
	words, err := parseCSV(key, value, string(corev1.ReadWriteOnce), string(corev1.ReadOnlyMany),
		string(corev1.ReadWriteMany), string(corev1.ReadWriteOncePod))
	if err != nil {
		return nil, err
	}
	modes := make([]corev1.PersistentVolumeAccessMode, len(words))
	for i, word := range words {
		modes[i] = corev1.PersistentVolumeAccessMode(word)
		if modes[i] == corev1.ReadWriteOncePod && len(words) > 1 {
			return nil, invalid(key, "ReadWriteOncePod goes with no other access mode")
		}
	}
	return modes, nil
}

func parseCapacity(key, value string) (*resource.Quantity, *Error) {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 || q.CmpInt64(math.MaxInt64) >= 0 {
		return nil, invalid(key, "%s is not a size such as 10Gi", quote(value))
	}
	return &q, nil
}

// parseDuration accepts a duration as Go writes it, or a bare number of seconds, in whole seconds.
func parseDuration(key, value string, least, most time.Duration) (time.Duration, *Error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		d, err = time.ParseDuration(value + "s")
	}
	if err != nil || d < least || d > most || d%time.Second != 0 {
		return 0, invalid(key, "%s is not a duration in whole seconds from %s to %s, such as 90s or 5m",
			quote(value), least, most)
	}
	return d, nil
}

var ratePattern = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?)(?:([KkMmGgTtPp])([Ii])?)?[Bb]?(?:/s)?$`)

// parseRate reads the engine's RATE: a decimal number, a unit of powers of 1000 or (with i) 1024, optionally B and /s.
// The answer is in bytes a second.
func parseRate(key, value string) (int64, *Error) {
	bad := invalid(key, "%s is not a rate in bytes a second such as 50Mi or 10M", quote(value))
	m := ratePattern.FindStringSubmatch(value)
	if m == nil {
		return 0, bad
	}
	number, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, bad
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	if m[2] != "" {
		number *= math.Pow(base, float64(1+strings.Index("KMGTP", strings.ToUpper(m[2]))))
	}
	if number >= 1<<62 || (number > 0 && number < 1) {
		return 0, bad
	}
	return int64(number), nil
}

// parseAddress accepts a host name, an IPv4 or an IPv6 address, the latter with or without brackets; the answer has none.
func parseAddress(key, value string) (string, *Error) {
	bare := value
	if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
		bare = value[1 : len(value)-1]
		if !strings.Contains(bare, ":") {
			return "", invalid(key, "brackets are for IPv6 addresses only, not for %s", quote(value))
		}
	}
	if _, err := netip.ParseAddr(bare); err == nil {
		return bare, nil
	}
	host := strings.ToLower(strings.TrimSuffix(bare, "."))
	if bare == value && len(validation.IsDNS1123Subdomain(host)) == 0 && !numeric(host) {
		return bare, nil
	}
	if strings.Contains(bare, ":") {
		return "", invalid(key, "%s is not a host name or an IP address; a port belongs into the parameter port", quote(value))
	}
	return "", invalid(key, "%s is not a host name or an IP address", quote(value))
}

// numeric tells a mistyped IPv4 address such as 10.0.0 or 10.0.0.300 from a host name.
func numeric(host string) bool {
	return strings.Trim(host, "0123456789.") == ""
}
