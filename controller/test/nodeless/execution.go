// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	hostIP = "127.0.0.1"
	// What the kubelet reports at most of a termination log.
	maximumMessage = 4096
	// What it reports of the output instead, where the pod asks for it.
	maximumLogMessage = 2048
)

// execution is one container from the first sight of its pod on. Its zero state is "not started".
type execution struct {
	key       client.ObjectKey
	address   string
	injection Injection
	notBefore time.Time
	// ended is closed when the container has ended and run is complete.
	ended chan struct{}

	mutex   sync.Mutex
	run     *Run
	command *exec.Cmd // nil for a container that a hook made up
	asked   time.Time
	journal *journal
	notify  func()
}

func (e *execution) started() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.run != nil
}

func (e *execution) hasEnded() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// start executes the container; notify is called when it has ended.
func (e *execution) start(j *journal, record Run, prepared *launch, mark []string, notify func()) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.journal, e.notify = j, notify
	if e.injection.Skip || e.injection.Hang {
		e.run = j.add(record)
		if e.injection.Skip {
			e.finish(e.injection.ExitCode, e.injection.Message)
		}
		return nil
	}
	record.Command = prepared.command
	record.Output, record.Errors = filepath.Join(prepared.folder, "stdout"), filepath.Join(prepared.folder, "stderr")
	if err := e.execute(prepared, record, mark); err != nil {
		return &waiting{"CreateContainerError", err}
	}
	e.run = j.add(record)
	go func() {
		code := exitCode(e.command.Wait())
		message := fileEnd(prepared.termination, maximumMessage)
		e.mutex.Lock()
		defer e.mutex.Unlock()
		e.finish(code, message)
	}()
	return nil
}

func (e *execution) execute(prepared *launch, record Run, mark []string) error {
	output, err := os.Create(record.Output)
	if err != nil {
		return err
	}
	defer output.Close()
	failures, err := os.Create(record.Errors)
	if err != nil {
		return err
	}
	defer failures.Close()
	line := prepared.command
	if prepared.identity != nil {
		line = prepared.identity.command(line)
	}
	line = protect(line, prepared.protected)
	command := exec.Command(line[0], line[1:]...)
	command.Dir = prepared.folder
	command.Stdout, command.Stderr = output, failures
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH"))
	command.Env = append(command.Env, mark...)
	for name, value := range prepared.environment {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Env = append(command.Env, e.injection.Environment...)
	// A group of its own, so that an interrupt from the terminal does not reach it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	e.command = command
	return command.Start()
}

// canProtect tells whether mount namespaces of our own can be had: not without root, and not where the root directory is
// no mount point, as in a plain chroot.
var canProtect = sync.OnceValue(func() bool {
	return os.Geteuid() == 0 && exec.Command("unshare", "--mount", "--propagation=private", "true").Run() == nil
})

// protect puts a program into a mount namespace in which the directories are read-only. Where that cannot be, it runs as
// it is. The shell replaces itself, so signals and the exit code are the program's.
func protect(command, directories []string) []string {
	if !canProtect() {
		return command
	}
	for _, directory := range directories {
		const script = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"`
		command = append([]string{"sh", "-c", script, directory}, command...)
	}
	if len(directories) > 0 {
		command = append([]string{"unshare", "--mount", "--propagation=private"}, command...)
	}
	return command
}

// finish records the end; the caller holds the mutex.
func (e *execution) finish(code int32, message string) {
	if e.hasEnded() {
		return
	}
	e.journal.finish(e.run, time.Now(), code, message)
	close(e.ended)
	go e.notify()
}

// askToEnd sends SIGTERM once and gives the time of that.
func (e *execution) askToEnd() time.Time {
	e.mutex.Lock()
	first := e.asked.IsZero()
	if first {
		e.asked = time.Now()
	}
	asked := e.asked
	e.mutex.Unlock()
	if first {
		e.signal(syscall.SIGTERM)
	}
	return asked
}

// signal sends a signal to the program, or ends a made-up container.
func (e *execution) signal(number syscall.Signal) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.run == nil || e.hasEnded() {
		return
	}
	if e.command == nil {
		e.finish(128+int32(number), "")
		return
	}
	_ = e.command.Process.Signal(number)
}

// outcome gives the state that the kubelet would report for the container.
func (e *execution) outcome(container *corev1.Container) corev1.ContainerState {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	start := timestamp(e.run.Start)
	if !e.hasEnded() {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}
	}
	state := &corev1.ContainerStateTerminated{
		ExitCode: e.run.ExitCode, Message: e.run.Message, Reason: "Completed",
		StartedAt: start, FinishedAt: timestamp(e.run.End), ContainerID: e.identifier(),
	}
	if state.ExitCode != 0 {
		state.Reason = "Error"
		if state.Message == "" && container.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
			state.Message = fileEnd(e.run.Errors, maximumLogMessage)
		}
	}
	return corev1.ContainerState{Terminated: state}
}

func (e *execution) identifier() string { return "nodeless://" + string(e.run.UID) }

// exitCode is what a container runtime reports: 128 and the signal for a program that was killed.
func exitCode(err error) int32 {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return 128
		}
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(exit.ExitCode())
}

// fileEnd gives the last bytes of a file, "" for none.
func fileEnd(path string, maximum int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maximum {
		_, _ = file.Seek(-maximum, io.SeekEnd)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(content)
}
