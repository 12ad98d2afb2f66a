// SPDX-License-Identifier: Apache-2.0

package moverresult

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// MoverPort is where a mover serves /progress, /metrics and /healthz.
const MoverPort = 9100

// Bounds of one fetch: a mover that is busy or hostile must not hold up a reconcile.
const (
	fetchTimeout   = 2 * time.Second
	maxProgressDoc = 16 << 10
)

// Fetcher asks running movers for their progress. The zero value is not usable; see NewFetcher. It may be used by several
// goroutines at once.
type Fetcher struct {
	client *http.Client
	port   int
}

// NewFetcher makes a Fetcher that asks at port of the pod's address: MoverPort outside of tests. Redirects are not
// followed and no proxy is used, since the answer comes from a pod that a tenant configures.
func NewFetcher(port int) *Fetcher {
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxProgressDoc,
		ResponseHeaderTimeout:  fetchTimeout,
	}
	return &Fetcher{
		client: &http.Client{
			Transport:     transport,
			Timeout:       fetchTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		port: port,
	}
}

// Fetch returns the progress of the mover at podIP, or nil where it has none yet. It takes at most 2 s.
func (f *Fetcher) Fetch(ctx context.Context, podIP string) (*Progress, error) {
	ip, err := netip.ParseAddr(podIP)
	if err != nil {
		return nil, errors.New("the pod has no valid address")
	}
	url := "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(f.port)) + "/progress"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for progress: %w", err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for progress: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("asking for progress: status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProgressDoc+1))
	if err != nil {
		return nil, fmt.Errorf("reading progress: %w", err)
	}
	if len(body) > maxProgressDoc {
		return nil, fmt.Errorf("the progress has more than %d bytes", maxProgressDoc)
	}
	return ParseProgress(body)
}
