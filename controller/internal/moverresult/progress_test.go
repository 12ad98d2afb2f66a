// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestProgressMethodStatus(t *testing.T) {
	tests := map[string]struct {
		body string
		want map[string]string
	}{
		"known": {
			`{"event":"progress","phase":"sync","total_known":true,"files_done":1,"files_total":2,"bytes_done":500,"bytes_total":1000,"bytes_per_s":2097152,"eta_s":90.4}`,
			map[string]string{"progressPhase": "sync", "progressBytes": "500 of 1000", "progressPercent": "50%", "progressRate": "2.0 MiB/s", "progressETA": "1m30s"},
		},
		"total unknown": {
			`{"event":"progress","phase":"sync","total_known":false,"bytes_done":5,"bytes_total":9,"bytes_per_s":10,"eta_s":null}`,
			map[string]string{"progressPhase": "sync", "progressBytes": "5", "progressRate": "10 B/s"},
		},
		"nearly done is not 100": {
			`{"event":"progress","phase":"sync","total_known":true,"bytes_done":999999,"bytes_total":1000000,"bytes_per_s":0,"eta_s":null}`,
			map[string]string{"progressPhase": "sync", "progressBytes": "999999 of 1000000", "progressPercent": "99%", "progressRate": "0 B/s"},
		},
		"empty volume, silly eta": {
			`{"event":"progress","phase":"flush","total_known":true,"bytes_done":0,"bytes_total":0,"bytes_per_s":0,"eta_s":1e18}`,
			map[string]string{"progressPhase": "flush", "progressBytes": "0 of 0", "progressPercent": "100%", "progressRate": "0 B/s"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := ParseProgress([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.MethodStatus(); !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProgressRefuses(t *testing.T) {
	for _, body := range []string{``, `{}`, `null`, `{"event":"progress"}`, `{"event":"progress","phase":"a\nb"}`,
		`{"event":"result","phase":"sync"}`, `{"event":"progress","phase":"sync","bytes_done":-1}`,
		`{"event":"progress","phase":"sync","bytes_done":1e40}`, `{"event":"progress","phase":"sync","eta_s":"x"}`} {
		if p, err := ParseProgress([]byte(body)); err == nil {
			t.Errorf("%s: %+v", body, p)
		}
	}
}

func serve(t *testing.T, handler http.HandlerFunc) *Fetcher {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return NewFetcher(server.Listener.Addr().(*net.TCPAddr).Port)
}

func TestFetch(t *testing.T) {
	const body = `{"event":"progress","phase":"sync","bytes_done":4}`
	tests := map[string]struct {
		handler http.HandlerFunc
		bytes   int64
		none    bool
		wantErr string
	}{
		"progress": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/progress" || r.Method != http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(w, body)
		}, 4, false, ""},
		"none yet": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 0, true, ""},
		"error":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, 0, true, "status 500"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/else" {
				fmt.Fprint(w, body)
				return
			}
			http.Redirect(w, r, "/else", http.StatusFound)
		}, 0, true, "status 302"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}, 0, true, "more than 16384 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := serve(t, tc.handler).Fetch(context.Background(), "127.0.0.1")
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if (p == nil) != tc.none || p != nil && p.BytesDone != tc.bytes {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestFetchGivesUp(t *testing.T) {
	release := make(chan struct{})
	fetcher := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	start := time.Now()
	if _, err := fetcher.Fetch(context.Background(), "127.0.0.1"); err == nil {
		t.Error("no error from a silent mover")
	}
	if took := time.Since(start); took > 2*fetchTimeout {
		t.Errorf("took %s", took)
	}
}

func TestFetchAddress(t *testing.T) {
	for _, ip := range []string{"", "example.com", "127.0.0.1:80", "a@127.0.0.1"} {
		if _, err := NewFetcher(MoverPort).Fetch(context.Background(), ip); err == nil || !strings.Contains(err.Error(), "no valid address") {
			t.Errorf("%q: %v", ip, err)
		}
	}
}
