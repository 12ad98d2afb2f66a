// SPDX-License-Identifier: Apache-2.0

package params

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func asText(env []corev1.EnvVar) string {
	lines := make([]string, len(env))
	for i, v := range env {
		lines[i] = v.Name + "=" + v.Value
	}
	return strings.Join(lines, "|")
}

func TestSourceEnv(t *testing.T) {
	p, err := ParseSource(source("address", "dst", "exclude", "*.tmp\n$(HOME)", "compression", "none",
		"bandwidthLimit", "1M", "streams", "2", "preserve", "owner,times", "syncTimeout", "5m", "verify", "full",
		"moverResources", `{"limits":{"memory":"256Mi"}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := asText(p.MoverEnv(Transfer{ReplicationID: "r", Epoch: "1-ab", Seq: 7, Attempt: "a", SourceVolumeID: "v", VolumeSize: 4096, FinalSyncID: "f"}))
	want := "VOLFERRY_ADDRESS=dst|VOLFERRY_PORT=8000|VOLFERRY_REPLICATION_ID=r|VOLFERRY_EPOCH=1-ab|VOLFERRY_SEQ=7|" +
		"VOLFERRY_ATTEMPT=a|VOLFERRY_SOURCE_VOLUME_ID=v|VOLFERRY_VOLUME_SIZE=4096|VOLFERRY_FINAL_SYNC_ID=f|" +
		"VOLFERRY_COMPRESSION=none|VOLFERRY_BANDWIDTH_LIMIT=1000000|VOLFERRY_STREAMS=2|VOLFERRY_DELETE=true|" +
		"VOLFERRY_PRESERVE=owner,times|VOLFERRY_EXCLUDE=*.tmp\n$$(HOME)|VOLFERRY_VERIFY=full|VOLFERRY_RETRIES=5|" +
		"VOLFERRY_CONNECT_TIMEOUT=60|VOLFERRY_SYNC_TIMEOUT=300|VOLFERRY_MEMORY=134217728"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDestinationEnv(t *testing.T) {
	p, err := ParseDestination(destination("port", "9000"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := asText(p.MoverEnv(Transfer{Seq: 3, Attempt: "a", Acknowledge: []string{"t1", "t2"}})); got != "VOLFERRY_SEQ=3|VOLFERRY_ATTEMPT=a|VOLFERRY_ACKNOWLEDGE=t1,t2" {
		t.Errorf("got %s", got)
	}
}

func TestMemoryBound(t *testing.T) {
	for limit, want := range map[string]string{"16Mi": "33554432", "512Mi": "268435456", "8Gi": ""} {
		p, err := ParseDestination(destination("moverResources", `{"limits":{"memory":"`+limit+`"}}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range p.MoverEnv(Transfer{}) {
			if v.Name == "VOLFERRY_MEMORY" {
				got = v.Value
			}
		}
		if got != want {
			t.Errorf("limit %s: got %q, want %q", limit, got, want)
		}
	}
}
