// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// Scheme knows the built-in kinds, resource definitions and volume snapshots.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(snapshotv1.AddToScheme(scheme))
	return scheme
}

// InstallCRDs installs the resource definitions in the files or folders and waits until they are served.
func (p *Plane) InstallCRDs(paths ...string) error {
	_, err := envtest.InstallCRDs(p.Admin(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	return err
}

// InstallSnapshotCRDs installs the definitions of VolumeSnapshot, VolumeSnapshotContent and
// VolumeSnapshotClass out of the module cache, so that this repository need not repeat them.
func (p *Plane) InstallSnapshotCRDs() error {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", snapshotModule).Output()
	if err != nil {
		return fmt.Errorf("the folder of %s: %w", snapshotModule, err)
	}
	folder := filepath.Join(strings.TrimSpace(string(output)), "config", "crd")
	paths, err := filepath.Glob(filepath.Join(folder, "snapshot.storage.k8s.io_*.yaml"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no definitions of snapshots in %s", folder)
	}
	return p.InstallCRDs(paths...)
}

// Apply applies every object in the YAML files, or in the files *.yaml of the folders, as `kubectl apply
// --server-side` would. A kustomization is left out.
func (p *Plane) Apply(ctx context.Context, paths ...string) error {
	c, err := p.Client()
	if err != nil {
		return err
	}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" || entry.Name() == "kustomization.yaml" {
				return err
			}
			return applyFile(ctx, c, file)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func applyFile(ctx context.Context, c client.Client, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		apply := client.ApplyConfigurationFromUnstructured(object)
		if err := c.Apply(ctx, apply, client.FieldOwner("controlplane"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s: %s %s: %w", path, object.GetKind(), object.GetName(), err)
		}
	}
}

// Repository finds the root of the repository above the working folder, for deploy/ and the like.
func Repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "controller", "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the working folder lies outside of the repository")
		}
		folder = parent
	}
}
