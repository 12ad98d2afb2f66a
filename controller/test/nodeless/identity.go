// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// ImageUser is the user and group that the mover's image names.
const ImageUser = 10001

// identity is whom a container runs as.
type identity struct {
	user, group int64
	groups      []int64
	// capabilities are those that even root has at most, in lower case; nil means all.
	capabilities []string
	noNewRights  bool
	fsGroup      *int64
}

// identityOf reads the security contexts; what the container says comes before what the pod says.
func identityOf(pod *corev1.Pod, container *corev1.Container) (*identity, error) {
	whole, own := pod.Spec.SecurityContext, container.SecurityContext
	if whole == nil {
		whole = &corev1.PodSecurityContext{}
	}
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	i := &identity{
		user:        *firstOf(own.RunAsUser, whole.RunAsUser, ptr.To[int64](ImageUser)),
		groups:      whole.SupplementalGroups,
		fsGroup:     whole.FSGroup,
		noNewRights: own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
	}
	// A user that the image does not know has the group of root.
	i.group = *firstOf(own.RunAsGroup, whole.RunAsGroup, ptr.To(map[bool]int64{true: ImageUser, false: 0}[i.user == ImageUser]))
	if i.fsGroup != nil {
		i.groups = append(i.groups[:len(i.groups):len(i.groups)], *i.fsGroup)
	}
	if given := own.Capabilities; given != nil {
		for _, dropped := range given.Drop {
			if dropped == "ALL" {
				i.capabilities = []string{}
			}
		}
		for _, added := range given.Add {
			i.capabilities = append(i.capabilities, strings.ToLower(string(added)))
		}
	}
	if nonRoot := firstOf(own.RunAsNonRoot, whole.RunAsNonRoot); nonRoot != nil && *nonRoot && i.user == 0 {
		return nil, errors.New("container has runAsNonRoot and would run as root")
	}
	return i, nil
}

func firstOf[T any](candidates ...*T) *T {
	for _, candidate := range candidates {
		if candidate != nil {
			return candidate
		}
	}
	return nil
}

// command puts a program under the identity. setpriv becomes the program, so it gets the signals.
func (i *identity) command(command []string) []string {
	line := []string{"setpriv", fmt.Sprintf("--reuid=%d", i.user), fmt.Sprintf("--regid=%d", i.group)}
	if len(i.groups) == 0 {
		line = append(line, "--clear-groups")
	} else {
		var names []string
		for _, group := range i.groups {
			names = append(names, strconv.FormatInt(group, 10))
		}
		line = append(line, "--groups="+strings.Join(names, ","))
	}
	if i.capabilities != nil {
		set := "-all"
		for _, name := range i.capabilities {
			set += ",+" + name
		}
		line = append(line, "--inh-caps=-all", "--bounding-set="+set)
	}
	if i.noNewRights {
		line = append(line, "--no-new-privs")
	}
	return append(append(line, "--"), command...)
}

// giveToGroup does to a volume what the kubelet does for fsGroup: the group may do what the owner may, and
// new files belong to it.
func giveToGroup(root string, group int64, policy corev1.PodFSGroupChangePolicy) error {
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	const wanted = 0o770
	if policy == corev1.FSGroupChangeOnRootMismatch && groupOf(info) == group &&
		info.Mode()&os.ModeSetgid != 0 && info.Mode().Perm()&wanted == wanted {
		return nil
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, int(group)); err != nil || info.Mode()&os.ModeSymlink != 0 {
			return err
		}
		mode := info.Mode() | 0o660
		if entry.IsDir() {
			mode |= 0o770 | os.ModeSetgid
		}
		return os.Chmod(path, mode)
	})
}

func groupOf(info os.FileInfo) int64 {
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(status.Gid)
	}
	return -1
}

// openToUsers lets other users reach volumes and the program below the plane's folder; what is secret in there is
// closed by itself.
func (n *Node) openToUsers(planeRoot string) error {
	if !n.users {
		return nil
	}
	for _, folder := range []string{planeRoot, n.root} {
		if err := os.Chmod(folder, 0o711); err != nil {
			return err
		}
	}
	if n.volferry == "" {
		return nil
	}
	// The folder that it was built in may be closed to others.
	program, err := os.ReadFile(n.volferry)
	if err != nil {
		return err
	}
	n.volferry = filepath.Join(n.root, "volferry")
	return os.WriteFile(n.volferry, program, 0o755)
}

// setIdentity finds out whom the container runs as, and gives its volumes to it as far as a kubelet and a
// container runtime do.
func (n *Node) setIdentity(pod *corev1.Pod, container *corev1.Container, l *launch) error {
	if !n.users {
		return nil
	}
	var err error
	if l.identity, err = identityOf(pod, container); err != nil {
		return err
	}
	for _, device := range l.devices {
		if err := n.Store.lend(device, l.identity.user, l.identity.group); err != nil {
			return err
		}
	}
	if l.identity.fsGroup == nil {
		return nil
	}
	policy := ptr.Deref(pod.Spec.SecurityContext.FSGroupChangePolicy, corev1.FSGroupChangeAlways)
	for _, folder := range l.writable {
		if err := giveToGroup(folder, *l.identity.fsGroup, policy); err != nil {
			return err
		}
	}
	for _, folder := range l.secrets {
		if err := openSecret(folder, *l.identity.fsGroup); err != nil {
			return err
		}
	}
	return nil
}
