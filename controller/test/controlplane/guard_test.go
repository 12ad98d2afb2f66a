// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const victimVariable = "CONTROLPLANE_TEST_VICTIM"

// beVictim starts a plane, says where, and waits to be killed.
func beVictim() {
	plane, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(plane.Root)
	select {}
}

// A killed test leaves neither processes nor files.
func TestNothingOutlivesAKilledProcess(t *testing.T) {
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimVariable+"=1")
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill() }()
	line, err := bufio.NewReader(output).ReadString('\n')
	root := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(root) {
		t.Fatalf("the plane did not start: %q, %v", line, err)
	}
	mark := guardVariable + "=" + filepath.Base(root)
	if parts := marked(t, mark); len(parts) != 3 {
		t.Fatalf("%d marked processes, want etcd, kube-apiserver and kube-controller-manager", len(parts))
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	eventually(t, "all parts end and the folder goes", func(context.Context) bool {
		_, err := os.Stat(root)
		return len(marked(t, mark)) == 0 && os.IsNotExist(err)
	})
}

// marked finds the processes that have the line in their environment.
func marked(t *testing.T, line string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		content, _ := os.ReadFile(file)
		for _, variable := range bytes.Split(content, []byte{0}) {
			if string(variable) == line {
				found = append(found, filepath.Dir(file))
			}
		}
	}
	return found
}
