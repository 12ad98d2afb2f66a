// SPDX-License-Identifier: Apache-2.0

package params

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The engine's own bounds, so that a value it would refuse is refused before a Job is made.
const (
	maxStreams    = 64
	maxRetries    = 1000
	maxConnect    = 24 * time.Hour
	maxSync       = 365 * 24 * time.Hour
	maxKeepImages = 16
)

var compressionPattern = regexp.MustCompile(`^(auto|none|zstd|zstd:([1-9]|1[0-9]))$`)

// preservable are the parts of metadata the engine can keep. Sparseness always is.
var preservable = []string{"owner", "perms", "times", "xattrs", "acls", "hardlinks", "sparse", "devices"}

// into makes a setter of a parser and the place its result goes to.
func into[T, V any](parse func(key, value string) (V, *Error), place func(*T) *V) setter[T] {
	return func(target *T, key, value string) *Error {
		v, err := parse(key, value)
		if err != nil {
			return err
		}
		*place(target) = v
		return nil
	}
}

// choice is a parser of one word out of several.
func choice[V ~string](words ...V) func(key, value string) (V, *Error) {
	plain := make([]string, len(words))
	for i, word := range words {
		plain[i] = string(word)
	}
	return func(key, value string) (V, *Error) {
		word, err := parseChoice(key, value, plain...)
		return V(word), err
	}
}

func intBetween(least, most int64) func(key, value string) (int, *Error) {
	return func(key, value string) (int, *Error) {
		n, err := parseInt(key, value, least, most)
		return int(n), err
	}
}

func durationBetween(least, most time.Duration) func(key, value string) (time.Duration, *Error) {
	return func(key, value string) (time.Duration, *Error) { return parseDuration(key, value, least, most) }
}

func parsePort(key, value string) (int32, *Error) {
	n, err := parseInt(key, value, 1, 65535)
	return int32(n), err
}

func sourceSetters() map[string]setter[SourceParams] {
	type P = SourceParams
	return map[string]setter[P]{
		"address":        into(parseAddress, func(p *P) *string { return &p.Address }),
		"compression":    into(parseCompression, func(p *P) *string { return &p.Compression }),
		"bandwidthLimit": into(parseRate, func(p *P) *int64 { return &p.BandwidthLimit }),
		"blockSize":      checkBlockSize,
		"streams":        into(intBetween(1, maxStreams), func(p *P) *int { return &p.Streams }),
		"delete":         into(parseBool, func(p *P) *bool { return &p.Delete }),
		"preserve":       into(parsePreserve, func(p *P) *[]string { return &p.Preserve }),
		"exclude":        into(parseExclude, func(p *P) *[]string { return &p.Exclude }),
		"verify":         into(parseVerify, func(p *P) *string { return &p.Verify }),
		"retries":        into(intBetween(0, maxRetries), func(p *P) *int { return &p.Retries }),
		"connectTimeout": into(durationBetween(time.Second, maxConnect), func(p *P) *time.Duration { return &p.ConnectTimeout }),
		"syncTimeout":    into(durationBetween(0, maxSync), func(p *P) *time.Duration { return &p.SyncTimeout }),
	}
}

func destinationSetters() map[string]setter[DestinationParams] {
	type P = DestinationParams
	volumeMode := choice(corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock)
	serviceType := choice(corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	return map[string]setter[P]{
		"volumeMode":         into(volumeMode, func(p *P) *corev1.PersistentVolumeMode { return &p.VolumeMode }),
		"keepImages":         into(intBetween(1, maxKeepImages), func(p *P) *int { return &p.KeepImages }),
		"undoJournal":        checkUndoJournal,
		"serviceType":        into(serviceType, func(p *P) *corev1.ServiceType { return &p.ServiceType }),
		"serviceAnnotations": into(parseServiceAnnotations, func(p *P) *map[string]string { return &p.ServiceAnnotations }),
	}
}

// addCommon adds the parameters of both kinds, wrapped so that they reach the Common part of T.
func addCommon[T any](setters map[string]setter[T], common func(*T) *Common, options Options) {
	type C = Common
	copyMethod := choice(CopySnapshot, CopyClone, CopyDirect)
	for key, set := range map[string]setter[C]{
		"keySecret":               into(parseName, func(c *C) *string { return &c.KeySecret }),
		"port":                    into(parsePort, func(c *C) *int32 { return &c.Port }),
		"copyMethod":              into(copyMethod, func(c *C) *CopyMethod { return &c.CopyMethod }),
		"storageClassName":        setStorageClass,
		"volumeSnapshotClassName": into(parseName, func(c *C) *string { return &c.VolumeSnapshotClassName }),
		"accessModes":             into(parseAccessModes, func(c *C) *[]corev1.PersistentVolumeAccessMode { return &c.AccessModes }),
		"capacity":                setCapacity,
		"moverSecurityContext":    securityContextSetter(options.PrivilegedMovers),
		"moverResources":          setMoverResources,
		"moverServiceAccount":     into(parseName, func(c *C) *string { return &c.MoverServiceAccount }),
		"moverPodLabels":          into(parsePodLabels, func(c *C) *map[string]string { return &c.MoverPodLabels }),
		"moverAffinity":           setMoverAffinity,
		"moverTolerations":        into(parseTolerations, func(c *C) *[]corev1.Toleration { return &c.MoverTolerations }),
	} {
		setters[key] = func(target *T, key, value string) *Error { return set(common(target), key, value) }
	}
}

func setStorageClass(c *Common, key, value string) *Error {
	if value != "" {
		if _, err := parseName(key, value); err != nil {
			return err
		}
	}
	c.StorageClassName = &value
	return nil
}

func setCapacity(c *Common, key, value string) (err *Error) {
	c.Capacity, err = parseCapacity(key, value)
	return err
}

func parseCompression(key, value string) (string, *Error) {
	if !compressionPattern.MatchString(value) {
		return "", invalid(key, "%s is not auto, none, zstd or zstd:1 to zstd:19", quote(value))
	}
	return value, nil
}

// checkBlockSize accepts what the engine does anyway: it compares in blocks that it sizes itself.
func checkBlockSize(_ *SourceParams, key, value string) *Error {
	if value == "auto" || value == "4Ki" {
		return nil
	}
	return invalid(key, "%s is not offered: the engine chooses the size of blocks itself (auto)", quote(value))
}

func checkUndoJournal(_ *DestinationParams, key, value string) *Error {
	if on, err := parseBool(key, value); err != nil || !on {
		return err
	}
	return invalid(key, "true is not offered: this engine keeps no undo journal; use copyMethod Snapshot or Clone")
}

func parseVerify(key, value string) (string, *Error) {
	if value == "sample" {
		return "", invalid(key, "sample is not offered: this engine verifies nothing beyond the transfer (none) or everything (full)")
	}
	return parseChoice(key, value, "none", "full")
}

func parsePreserve(key, value string) ([]string, *Error) {
	if value == "all" {
		return nil, nil
	}
	list, err := parseCSV(key, value, preservable...)
	slices.Sort(list)
	return list, err
}

// parseExclude takes one pattern a line; blank lines are skipped.
func parseExclude(key, value string) ([]string, *Error) {
	var patterns []string
	for line := range strings.Lines(value) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' }) {
			return nil, invalid(key, "%s holds a control character", quote(line))
		}
		patterns = append(patterns, line)
	}
	return patterns, nil
}
