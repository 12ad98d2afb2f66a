// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"volferry.io/controller/api/v1alpha1"
)

// EpochCounter is the COUNTER of COUNTER-NONCE; 0 for the first epoch, which has no name.
func EpochCounter(epoch string) uint64 {
	counter, _, _ := strings.Cut(epoch, "-")
	n, err := strconv.ParseUint(counter, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// NextEpoch follows an epoch, and the greatest counter known. The nonce tells two peers apart that were promoted independently of each other.
func NextEpoch(epoch string, highest uint64, nonce string) string {
	return fmt.Sprintf("%d-%s", max(EpochCounter(epoch), highest)+1, nonce)
}

// LineageOf is what a promotion noted on a volume; nil where there is nothing that can be read.
func LineageOf(pv *corev1.PersistentVolume) *v1alpha1.Lineage {
	lineage := &v1alpha1.Lineage{}
	if json.Unmarshal([]byte(pv.Annotations[v1alpha1.AnnotationLineage]), lineage) != nil || lineage.Seq < 0 {
		return nil
	}
	return lineage
}

// LineageText is the value of the annotation that LineageOf reads.
func LineageText(lineage v1alpha1.Lineage) string {
	text, err := json.Marshal(lineage)
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	return string(text)
}
