// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// writeFiles fills the folder of a Secret or ConfigMap in the layout of the kubelet, which programs know: the files lie in
// a dated folder, `..data` leads to that, and each name leads through `..data`. With items only these, under their paths.
func writeFiles(folder string, content map[string][]byte, items []corev1.KeyToPath, mode *int32) error {
	// It may have been begun when something else was still missing.
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	dated := filepath.Join(folder, time.Now().Format("..2006_01_02_15_04_05.000000000"))
	if err := os.MkdirAll(dated, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		return err
	}
	if len(items) == 0 {
		for key := range content {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		bytes, found := content[item.Key]
		if !found {
			return fmt.Errorf("there is no key %q", item.Key)
		}
		file := filepath.Join(dated, filepath.Clean("/"+item.Path))
		if err := writeFile(file, bytes, os.FileMode(*firstOf(item.Mode, mode, ptr.To[int32](0o644)))); err != nil {
			return err
		}
		top, _, _ := strings.Cut(strings.TrimPrefix(file, dated+"/"), "/")
		err := os.Symlink(filepath.Join("..data", top), filepath.Join(folder, top))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Symlink(filepath.Base(dated), filepath.Join(folder, "..data"))
}

func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// openSecret lets a group read the files of a mounted Secret or ConfigMap, as the kubelet does for fsGroup.
func openSecret(folder string, group int64) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return errors.Join(os.Chown(path, -1, int(group)), os.Chmod(path, info.Mode()|0o440))
	})
}
