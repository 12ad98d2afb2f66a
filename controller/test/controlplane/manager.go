// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// managerProcess is a running kube-controller-manager.
type managerProcess struct {
	command *exec.Cmd
	ended   chan struct{}
	failure error
}

// startManager starts kube-controller-manager with each controller under its own service account, as clusters do.
func (p *Plane) startManager(further []string) (*managerProcess, error) {
	user, err := p.env.ControlPlane.AddUser(envtest.User{Name: "system:kube-controller-manager"}, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	configFile := filepath.Join(p.Root, "kube-controller-manager.kubeconfig")
	rootFile := filepath.Join(p.Root, "root-ca.crt")
	if err := os.WriteFile(configFile, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(rootFile, p.admin.CAData, 0o600); err != nil {
		return nil, err
	}
	flags := []string{
		"--kubeconfig=" + configFile,
		"--root-ca-file=" + rootFile,
		"--service-account-private-key-file=" + filepath.Join(p.env.ControlPlane.APIServer.CertDir, "sa-signer.key"),
		"--use-service-account-credentials",
		"--leader-elect=false",
		"--secure-port=0",
		// A node here has no kubelet that renews its lease, and losing it must not end its pods.
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
		// What the binder does not see as an event it sees after a second instead of 15.
		"--pvclaimbinder-sync-period=1s",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	log, err := p.logFile("kube-controller-manager")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(filepath.Join(p.Assets, "kube-controller-manager"), append(flags, further...)...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), p.Environment()...)
	if err := command.Start(); err != nil {
		return nil, err
	}
	process := &managerProcess{command: command, ended: make(chan struct{})}
	go func() {
		process.failure = command.Wait()
		close(process.ended)
	}()
	return process, nil
}

func (m *managerProcess) stop() {
	_ = m.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
	case <-time.After(stopTimeout):
		_ = m.command.Process.Kill()
		<-m.ended
	}
}

// waitForControllers waits until the service account controller has made the account of namespace default:
// the controllers start together, and without accounts no Job could make a pod.
func (p *Plane) waitForControllers(ctx context.Context) error {
	c, err := p.Client()
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.manager.ended:
			return false, fmt.Errorf("kube-controller-manager ended: %w", p.manager.failure)
		default:
		}
		key := client.ObjectKey{Namespace: "default", Name: "default"}
		return c.Get(ctx, key, &corev1.ServiceAccount{}) == nil, nil
	})
}
