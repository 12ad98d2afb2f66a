// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// guardVariable marks, by its value, the processes that belong to one plane.
const guardVariable = "CONTROLPLANE_GUARD"

// guardScript waits for the end of its input, which comes when the plane is stopped, but also when the
// process that started it panics, times out or is killed. Then it ends what carries the plane's mark,
// gives loop devices back and removes the folder. It sees itself too, and so leaves itself out.
const guardScript = `
read -r mark; read -r root; read -r keep; read -r end
for folder in /proc/[0-9]*; do
  pid=${folder#/proc/}
  [ "$pid" = "$$" ] && continue
  if { tr '\0' '\n' <"$folder/environ"; } 2>/dev/null | grep -qxF "$mark"; then kill -9 "$pid" 2>/dev/null; fi
done
command -v losetup >/dev/null && losetup -n -O NAME,BACK-FILE 2>/dev/null | while read -r device file; do
  case $file in "$root"/*) losetup -d "$device" ;; esac
done
[ -n "$keep" ] || for try in 1 2 3 4 5; do rm -rf "$root" 2>/dev/null && break; sleep 0.2; done
`

// guard is the process that cleans up after the plane.
type guard struct {
	id      string
	command *exec.Cmd
	input   io.WriteCloser
}

// startGuard starts the guard of the plane whose folder is root.
func startGuard(root string) (*guard, error) {
	id := filepath.Base(root)
	// A session of its own: an interrupt from the terminal must not end it together with its parent.
	command := exec.Command("sh", "-c", guardScript)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("the guard of the control plane: %w", err)
	}
	lines := []string{guardVariable + "=" + id, root, os.Getenv("VOLFERRY_KEEP")}
	if _, err := io.WriteString(input, strings.Join(lines, "\n")+"\n"); err != nil {
		return nil, fmt.Errorf("the guard of the control plane: %w", err)
	}
	return &guard{id: id, command: command, input: input}, nil
}

// finish lets the guard clean up and waits for it.
func (g *guard) finish() error {
	_ = g.input.Close()
	// Its exit code is that of its last cleaning command, which says nothing.
	_ = g.command.Wait()
	return nil
}
