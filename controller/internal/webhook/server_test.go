// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// start runs a server until the test ends and gives its address.
func start(t *testing.T, s *Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener, s.Log = listener, logr.Discard()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(2 * shutdownTimeout):
			t.Error("the server does not end")
		}
	})
	return listener.Addr().String()
}

// served gets a page under the name and trusts the certificate alone.
func served(t *testing.T, address, name string, trusted *x509.Certificate) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Get("https://" + address + "/")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "served" {
		t.Errorf("got %q, %v", body, err)
	}
	return nil
}

// presented is the certificate that the server shows.
func presented(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}

func TestSelfSignedServer(t *testing.T) {
	address := start(t, &Server{Names: []string{"hook.example.com"}})
	if err := served(t, address, "hook.example.com", presented(t, address)); err != nil {
		t.Error(err)
	}
	if response, err := http.Get("http://" + address + "/"); err == nil {
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("served without TLS")
		}
	}
}

func writePair(t *testing.T, folder, name string) *x509.Certificate {
	t.Helper()
	pair, _, err := selfSigned([]string{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		"tls.key": {Type: "EC PRIVATE KEY", Bytes: key}, "tls.crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
	} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestCertificateFilesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	first := writePair(t, folder, "one.example.com")
	address := start(t, &Server{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key")})
	if err := served(t, address, "one.example.com", first); err != nil {
		t.Fatal(err)
	}
	second := writePair(t, folder, "two.example.com")
	deadline := time.Now().Add(30 * time.Second)
	for !presented(t, address).Equal(second) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not used")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestMissingCertificateIsAnError(t *testing.T) {
	s := &Server{CertFile: "/nonexistent/tls.crt", KeyFile: "/nonexistent/tls.key", Log: logr.Discard()}
	if err := s.Start(context.Background()); err == nil {
		t.Error("started without the certificate it was told to use")
	}
}

func TestEveryReplicaServes(t *testing.T) {
	if (&Server{}).NeedLeaderElection() {
		t.Error("only the leader would serve")
	}
}
