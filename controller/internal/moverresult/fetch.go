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

// MoverPort is where a mover serves /progress, /refusal, /metrics and /healthz.
const MoverPort = 9100

// Bounds of one fetch: a mover that is busy or hostile must not hold up a reconcile.
const (
	fetchTimeout = 2 * time.Second
	maxAnswer    = 16 << 10
)

// Fetcher asks running movers how they get on. The zero value is not usable; see NewFetcher. It may be used by several
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
		MaxResponseHeaderBytes: maxAnswer,
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
	body, err := f.get(ctx, podIP, "/progress")
	if body == nil || err != nil {
		return nil, err
	}
	return ParseProgress(body)
}

// FetchRefusal returns why the mover at podIP refused its last peer, or nil where it did not. It takes at most 2 s.
func (f *Fetcher) FetchRefusal(ctx context.Context, podIP string) (*Refusal, error) {
	body, err := f.get(ctx, podIP, "/refusal")
	if body == nil || err != nil {
		return nil, err
	}
	return ParseRefusal(body)
}

// get is nil where the mover has nothing to say at path.
func (f *Fetcher) get(ctx context.Context, podIP, path string) ([]byte, error) {
	ip, err := netip.ParseAddr(podIP)
	if err != nil {
		return nil, errors.New("the pod has no valid address")
	}
	url := "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(f.port)) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("asking for %s: status %d", path, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxAnswer)
	}
	return body, nil
}
