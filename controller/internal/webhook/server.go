// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Server serves a Handler over TLS. It is a controller-runtime Runnable that runs on every replica.
type Server struct {
	// Address to listen at, such as :9443. Not used where Listener is set.
	Address  string
	Listener net.Listener
	// CertFile and KeyFile are read again when they change. Without them a self-signed certificate is made at each start.
	CertFile, KeyFile string
	// Names are the DNS names in the self-signed certificate.
	Names   []string
	Handler http.Handler
	Log     logr.Logger
}

// Timeouts of one connection: a request is small, and its answer waits for a few reads from the API server.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 60 * time.Second
	shutdownTimeout = 10 * time.Second
	maxHeader       = 16 << 10
)

// NeedLeaderElection says that every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends, then lets requests end for at most 10 s.
func (s *Server) Start(ctx context.Context) error {
	certificate, err := s.certificate(ctx)
	if err != nil {
		return err
	}
	listener := s.Listener
	if listener == nil {
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address); err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
	}
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		// HTTP/1.1 alone: nothing here gains from streams.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate, NextProtos: []string{"http/1.1"}},
		// Handshakes that strangers fail are nothing to act on, and would fill the log.
		ErrorLog:     log.New(io.Discard, "", 0),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	s.Log.Info("the webhook listens", "address", listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("webhook: %w", err)
	case <-ctx.Done():
	}
	// The context of the manager has ended; what is under way gets a little time of its own.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// certificate comes from the files, watched until the context ends, or is made here.
func (s *Server) certificate(ctx context.Context) (getCertificate, error) {
	if s.CertFile == "" && s.KeyFile == "" {
		certificate, fingerprint, err := selfSigned(s.Names, time.Now())
		if err != nil {
			return nil, fmt.Errorf("webhook: make a certificate: %w", err)
		}
		s.Log.Info("no certificate is given: the webhook uses a self-signed one, made anew at each start",
			"sha256", fingerprint, "names", s.Names)
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }, nil
	}
	watcher, err := certwatcher.New(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("webhook: read the certificate: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			s.Log.Error(err, "the certificate is not watched any more")
		}
	}()
	return watcher.GetCertificate, nil
}
