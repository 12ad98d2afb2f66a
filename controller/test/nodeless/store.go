// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// Store keeps volumes and snapshots in a folder: each has a folder of its own, named by its handle, with
// either the directory `files` or the sparse file `disk`. A volume's disk is served by a loop device.
type Store struct {
	root    string
	mutex   sync.Mutex
	devices map[string]string         // handle -> loop device
	lent    map[string]syscall.Stat_t // loop device -> what it was before it was lent
}

// ErrNoLoopDevice says that this machine cannot make a block volume.
var ErrNoLoopDevice = errors.New("no loop device can be had here")

// NewStore makes a store in a folder, which must exist.
func NewStore(root string) *Store {
	return &Store{root: root, devices: map[string]string{}, lent: map[string]syscall.Stat_t{}}
}

// Root is the folder of the store. A volume of files lies in HANDLE/files below it.
func (s *Store) Root() string { return s.root }

// LoopDevicesWork says why block volumes cannot be made here, or nil. Tests skip with it.
func (s *Store) LoopDevicesWork() error {
	const probe = "probe-of-loop-devices"
	if err := s.Create(probe, corev1.PersistentVolumeBlock, 1<<20); err != nil {
		return err
	}
	_, err := s.Path(probe)
	return errors.Join(err, s.Delete(probe))
}

func (s *Store) folder(handle string) string { return filepath.Join(s.root, handle) }
func (s *Store) files(handle string) string  { return filepath.Join(s.root, handle, "files") }
func (s *Store) disk(handle string) string   { return filepath.Join(s.root, handle, "disk") }

// Exists says whether there is a volume or snapshot of that handle.
func (s *Store) Exists(handle string) bool {
	_, err := os.Stat(s.folder(handle))
	return err == nil && handle != ""
}

// Create makes an empty volume of that many bytes, unless it is there.
func (s *Store) Create(handle string, mode corev1.PersistentVolumeMode, size int64) error {
	return s.make(handle, func(scratch string) error {
		if mode != corev1.PersistentVolumeBlock {
			return os.Mkdir(filepath.Join(scratch, "files"), 0o755)
		}
		return growFile(filepath.Join(scratch, "disk"), size)
	})
}

// Copy makes a volume or snapshot of that handle with the content of another, unless it is there. A disk is at
// least size bytes long; a snapshot, of size 0, is as long as its origin.
func (s *Store) Copy(origin, handle string, size int64) error {
	if !s.Exists(origin) {
		return fmt.Errorf("there is no volume or snapshot %s", origin)
	}
	if err := s.flush(origin); err != nil {
		return err
	}
	return s.make(handle, func(scratch string) error {
		if err := run("cp", "-a", "--reflink=auto", "--sparse=always", s.folder(origin)+"/.", scratch); err != nil {
			return err
		}
		disk := filepath.Join(scratch, "disk")
		if _, err := os.Stat(disk); err != nil {
			return nil
		}
		return growFile(disk, size)
	})
}

// make fills a folder beside and renames it, so that a volume is there wholly or not at all.
func (s *Store) make(handle string, fill func(scratch string) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.Exists(handle) {
		return nil
	}
	scratch, err := os.MkdirTemp(s.root, ".new-")
	if err != nil {
		return err
	}
	// Pods of other users must get to what is inside.
	if err := errors.Join(fill(scratch), os.Chmod(scratch, 0o755)); err != nil {
		return errors.Join(err, os.RemoveAll(scratch))
	}
	return os.Rename(scratch, s.folder(handle))
}

// Path gives what a pod would find mounted: the directory, or the device, which is set up if need be.
func (s *Store) Path(handle string) (string, error) {
	if info, err := os.Stat(s.files(handle)); err == nil && info.IsDir() {
		return s.files(handle), nil
	}
	if _, err := os.Stat(s.disk(handle)); err != nil {
		return "", fmt.Errorf("there is no volume %s", handle)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if device := s.devices[handle]; device != "" {
		return device, nil
	}
	output, err := exec.Command("losetup", "--find", "--show", s.disk(handle)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", ErrNoLoopDevice, strings.TrimSpace(string(output)))
	}
	s.devices[handle] = strings.TrimSpace(string(output))
	return s.devices[handle], nil
}

// lend makes a loop device of the store the user's, as a container runtime does with a pod's devices.
func (s *Store) lend(device string, user, group int64) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, known := s.lent[device]; !known {
		var before syscall.Stat_t
		if err := syscall.Stat(device, &before); err != nil {
			return err
		}
		s.lent[device] = before
	}
	return os.Chown(device, int(user), int(group))
}

// Grow makes a disk longer. A directory has no limit of its own.
func (s *Store) Grow(handle string, size int64) error {
	if _, err := os.Stat(s.disk(handle)); err != nil {
		return nil
	}
	if err := growFile(s.disk(handle), size); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if device := s.devices[handle]; device != "" {
		return run("losetup", "--set-capacity", device)
	}
	return nil
}

// Delete removes a volume or snapshot; none is not an error.
func (s *Store) Delete(handle string) error {
	if handle == "" || filepath.Base(handle) != handle {
		return fmt.Errorf("%q is no handle", handle)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.detach(handle); err != nil {
		return err
	}
	return os.RemoveAll(s.folder(handle))
}

// Close gives all loop devices back; the files stay.
func (s *Store) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var failures []error
	for handle := range s.devices {
		failures = append(failures, s.detach(handle))
	}
	return errors.Join(failures...)
}

func (s *Store) detach(handle string) error {
	device := s.devices[handle]
	if device == "" {
		return nil
	}
	delete(s.devices, handle)
	// The machine gets it back as it was.
	if info, lent := s.lent[device]; lent {
		delete(s.lent, device)
		if err := os.Chown(device, int(info.Uid), int(info.Gid)); err != nil {
			return err
		}
	}
	return run("losetup", "--detach", device)
}

// flush brings what was written to the device into the file behind it.
func (s *Store) flush(handle string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if device := s.devices[handle]; device != "" {
		return run("blockdev", "--flushbufs", device)
	}
	return nil
}

// growFile makes a sparse file at least that long.
func growFile(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return file.Truncate(size)
}

func run(name string, arguments ...string) error {
	output, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
