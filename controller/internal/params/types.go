// SPDX-License-Identifier: Apache-2.0

package params

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CopyMethod is how a point in time of a volume is kept.
type CopyMethod string

// Copy methods.
const (
	CopySnapshot CopyMethod = "Snapshot"
	CopyClone    CopyMethod = "Clone"
	CopyDirect   CopyMethod = "Direct"
)

// DefaultPort is where a mover listens, and the Service's port unless `port` says otherwise.
const DefaultPort int32 = 8000

// Options are facts from outside that decide whether parameters are acceptable.
type Options struct {
	// PrivilegedMovers is whether the namespace permits movers as root or with capabilities.
	PrivilegedMovers bool
	// Adopting is whether the Destination takes over an existing volume, which makes `capacity` optional.
	Adopting bool
}

// Common holds what both kinds may set about the mover's pod and the volumes made for it.
type Common struct {
	// KeySecret names the Secret with the key. A Destination without one gets a generated key.
	KeySecret string
	// Port is the Service's port (Destination), or the port to connect to (Source).
	Port       int32
	CopyMethod CopyMethod
	// StorageClassName is nil for the default: the cluster's for staging volumes, the claim's own for copies.
	StorageClassName        *string
	VolumeSnapshotClassName string
	// AccessModes of volumes that are made. Empty on a Source: those of its claim.
	AccessModes []corev1.PersistentVolumeAccessMode
	// Capacity of volumes that are made. Nil on a Source: as large as needed.
	Capacity *resource.Quantity

	MoverSecurityContext *corev1.PodSecurityContext
	// MoverCapabilities are added to the mover's container; only in namespaces that permit privileged movers.
	MoverCapabilities   []corev1.Capability
	MoverResources      *corev1.ResourceRequirements
	MoverServiceAccount string
	MoverPodLabels      map[string]string
	MoverAffinity       *corev1.Affinity
	MoverTolerations    []corev1.Toleration
}

// SourceParams are the parameters of a Source.
type SourceParams struct {
	Common
	// Address is a host name or an IP address without brackets; empty until the user knows it, see ReadyToSync.
	Address string
	// Compression in the mover's spelling; empty: the mover chooses.
	Compression string
	// BandwidthLimit in bytes a second; 0: none.
	BandwidthLimit int64
	// Streams is the number of connections; 0: the mover chooses.
	Streams int
	Delete  bool
	// Preserve lists what is kept of the metadata; empty: everything.
	Preserve []string
	Exclude  []string
	// Verify is none or full.
	Verify string
	// Retries is the number of reconnects within one run of the mover.
	Retries        int
	ConnectTimeout time.Duration
	// SyncTimeout bounds one run of the mover; 0: no bound.
	SyncTimeout time.Duration
}

// DestinationParams are the parameters of a Destination.
type DestinationParams struct {
	Common
	VolumeMode corev1.PersistentVolumeMode
	// KeepImages is how many images are kept, the newest included.
	KeepImages         int
	ServiceType        corev1.ServiceType
	ServiceAnnotations map[string]string
}

// ReadyToSync tells what still lacks before the first sync can run: the peer's address may be unknown when a Source is
// made, so its absence does not make the resource unacceptable.
func (p *SourceParams) ReadyToSync() error {
	if p.Address == "" {
		return invalid("address", "is required before the first sync: the address that the Destination shows in its status")
	}
	return nil
}
