// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestRefusalSample(t *testing.T) {
	sample, err := os.ReadFile("../../../docs/samples/mover/refusal.json")
	if err != nil {
		t.Fatal(err)
	}
	fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/refusal" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(sample)
	})
	refusal, err := fetcher.FetchRefusal(context.Background(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if refusal.Reason != "StaleEpoch" || !strings.HasSuffix(refusal.Message, "token=0123456789ab") {
		t.Errorf("%+v", refusal)
	}
}

func TestNoRefusal(t *testing.T) {
	fetcher := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if refusal, err := fetcher.FetchRefusal(context.Background(), "127.0.0.1"); refusal != nil || err != nil {
		t.Errorf("%+v, %v", refusal, err)
	}
}

func TestParseRefusalRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":          ``,
		"null":             `null`,
		"another event":    `{"event":"progress","reason":"StaleEpoch","message":"x"}`,
		"no message":       `{"event":"refusal","reason":"StaleEpoch"}`,
		"reason no word":   `{"event":"refusal","reason":"Stale Epoch","message":"x"}`,
		"several lines":    `{"event":"refusal","reason":"StaleEpoch","message":"x\ny"}`,
		"not UTF-8":        "{\"event\":\"refusal\",\"reason\":\"StaleEpoch\",\"message\":\"\xff\"}",
		"message too long": `{"event":"refusal","reason":"StaleEpoch","message":"` + strings.Repeat("x", maxRefusal+1) + `"}`,
		"type":             `{"event":"refusal","reason":1,"message":"x"}`,
	} {
		if refusal, err := ParseRefusal([]byte(body)); err == nil {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
}
