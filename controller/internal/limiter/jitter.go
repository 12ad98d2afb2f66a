// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Jitter is how long after its tick a sync starts, so that many schedules with the same tick do not start at one moment.
// It is less than most and at most a tenth of the interval, so that the rhythm stays, and depends only on its arguments,
// so that a restart does not draw again.
func Jitter(uid string, tick time.Time, interval, most time.Duration) time.Duration {
	bound := min(most, interval/10)
	if bound <= 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(uid))
	hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(tick.Unix())))
	return time.Duration(mix(hash.Sum64()) % uint64(bound))
}

// mix spreads what FNV leaves in the low bits when only the last bytes differ (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
