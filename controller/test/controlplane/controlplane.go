// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
)

// Options say how a control plane is started. The zero value is a good one.
type Options struct {
	// Assets is the folder with the programs etcd, kube-apiserver and kube-controller-manager.
	// Empty: that of the environment variable KUBEBUILDER_ASSETS, else of K8S_BIN.
	Assets string
	// ManagerFlags are further flags of kube-controller-manager; a later flag wins.
	ManagerFlags []string
	// APIServerFlags replace flags of kube-apiserver, by name without dashes.
	APIServerFlags map[string]string
}

// Plane is a running control plane.
type Plane struct {
	// Root is a folder of this plane alone: data, certificates, and the logs of its parts. It is
	// removed by Stop, unless the environment variable VOLFERRY_KEEP is set.
	Root string
	// Assets is the folder that the programs came from.
	Assets string
	// Loopback has the addresses that are this plane's alone.
	Loopback *Loopback

	admin   *rest.Config
	env     *envtest.Environment
	manager *managerProcess
	guard   *guard
}

// ErrNoAssets says that the programs are not there.
var ErrNoAssets = errors.New("the parts of Kubernetes are missing: set KUBEBUILDER_ASSETS=$(scripts/k8s-parts)")

// startLock keeps the environment of one process from being changed by two starts at once.
var startLock sync.Mutex

// Start starts a control plane and waits until its controllers act. The caller calls Stop.
func Start(ctx context.Context, options Options) (*Plane, error) {
	assets, err := findAssets(options.Assets)
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "volferry-plane-")
	if err != nil {
		return nil, err
	}
	plane := &Plane{Root: root, Assets: assets}
	if err := plane.start(ctx, options); err != nil {
		return nil, errors.Join(err, plane.logTails(), plane.Stop())
	}
	return plane, nil
}

func (p *Plane) start(ctx context.Context, options Options) error {
	var err error
	if p.guard, err = startGuard(p.Root); err != nil {
		return err
	}
	if p.Loopback, err = reserveLoopback(); err != nil {
		return err
	}
	if err := p.startAPIServer(options); err != nil {
		return err
	}
	if p.manager, err = p.startManager(options.ManagerFlags); err != nil {
		return err
	}
	return p.waitForControllers(ctx)
}

// startAPIServer starts etcd and kube-apiserver, with service accounts, which envtest leaves out.
func (p *Plane) startAPIServer(options Options) error {
	p.env = &envtest.Environment{
		BinaryAssetsDirectory:    p.Assets,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	server := p.env.ControlPlane.GetAPIServer()
	server.Path = filepath.Join(p.Assets, "kube-apiserver")
	server.CertDir = filepath.Join(p.Root, "certificates")
	p.env.ControlPlane.Etcd = &envtest.Etcd{
		Path:    filepath.Join(p.Assets, "etcd"),
		DataDir: filepath.Join(p.Root, "etcd"),
	}
	for _, folder := range []string{server.CertDir, p.env.ControlPlane.Etcd.DataDir} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	arguments := server.Configure()
	arguments.Disable("disable-admission-plugins")
	arguments.Set("service-cluster-ip-range", p.Loopback.ServiceRange)
	for name, value := range options.APIServerFlags {
		arguments.Set(name, value)
	}
	serverLog, err := p.logFile("kube-apiserver")
	if err != nil {
		return err
	}
	etcdLog, err := p.logFile("etcd")
	if err != nil {
		return err
	}
	server.Out, server.Err = serverLog, serverLog
	p.env.ControlPlane.Etcd.Out, p.env.ControlPlane.Etcd.Err = etcdLog, etcdLog

	startLock.Lock()
	defer startLock.Unlock()
	_ = os.Setenv(guardVariable, p.guard.id)
	defer os.Unsetenv(guardVariable)
	p.admin, err = p.env.Start()
	return err
}

// Stop ends every process of the plane and removes its folder. It may be called twice.
func (p *Plane) Stop() error {
	var failures []error
	if p.manager != nil {
		p.manager.stop()
		p.manager = nil
	}
	if p.env != nil {
		failures = append(failures, p.env.Stop())
		p.env = nil
	}
	if p.Loopback != nil {
		p.Loopback.release()
	}
	if p.guard != nil {
		failures = append(failures, p.guard.finish())
		p.guard = nil
	}
	return errors.Join(failures...)
}

// Admin gives the credentials of a cluster administrator.
func (p *Plane) Admin() *rest.Config { return rest.CopyConfig(p.admin) }

// Client gives an uncached client of the administrator for the kinds that Scheme knows.
func (p *Plane) Client() (client.Client, error) {
	return client.New(p.Admin(), client.Options{Scheme: Scheme()})
}

// Environment is what a process that belongs to the plane needs in its environment, so that it ends with the plane.
func (p *Plane) Environment() []string { return []string{guardVariable + "=" + p.guard.id} }

func (p *Plane) logFile(name string) (*os.File, error) {
	return os.Create(filepath.Join(p.Root, name+".log"))
}

// logTails gives the ends of the parts' logs, as an error to add to another.
func (p *Plane) logTails() error {
	var text string
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if tail := fileTail(filepath.Join(p.Root, name+".log"), 1500); tail != "" {
			text += fmt.Sprintf("\nend of the log of %s:\n%s", name, tail)
		}
	}
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func fileTail(path string, size int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > size {
		_, _ = file.Seek(-size, io.SeekEnd)
	}
	content, _ := io.ReadAll(file)
	return string(content)
}

func findAssets(folder string) (string, error) {
	for _, candidate := range []string{folder, os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("K8S_BIN")} {
		if candidate == "" {
			continue
		}
		for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
			if _, err := os.Stat(filepath.Join(candidate, program)); err != nil {
				return "", fmt.Errorf("%w: %w", ErrNoAssets, err)
			}
		}
		return filepath.Abs(candidate)
	}
	return "", ErrNoAssets
}
