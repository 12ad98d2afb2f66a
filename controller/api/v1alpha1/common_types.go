// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MethodRsync is the built-in method's canonical spelling; `rsync` is accepted too.
const MethodRsync = "Rsync"

// BuiltInMethod tells whether this controller serves the method. All others belong to a controller of their own, which
// then owns the whole status.
func BuiltInMethod(method string) bool { return strings.EqualFold(method, MethodRsync) }

// Names of what the controller writes on objects; see docs/controller.md.
const (
	// Finalizer guards a Source or Destination while something of it is left to clean up.
	Finalizer = "volferry.io/cleanup"
	// AnnotationIncarnation holds the metadata.uid under which a resource was accepted; a restored copy has another uid.
	AnnotationIncarnation = "volferry.io/incarnation"
	// AnnotationSyncRequest holds the id of the last sync asked for through the webhook.
	AnnotationSyncRequest = "volferry.io/sync-request"
	// AnnotationOriginalReclaimPolicy on a PersistentVolume remembers the policy it had before ours.
	AnnotationOriginalReclaimPolicy = "volferry.io/original-reclaim-policy"
	// AnnotationInputHash on a Job is the hash of what it was built from.
	AnnotationInputHash = "volferry.io/input-hash"
	// AnnotationPrivilegedMovers on a Namespace with value "true" permits movers that run as root.
	AnnotationPrivilegedMovers = "volferry.io/privileged-movers"
	// AnnotationOwner on a child names the resource it belongs to, as kind/namespace/name.
	AnnotationOwner = "volferry.io/owner"
	// AnnotationLineage on a PersistentVolume is the lineage that its promotion gave it, as JSON: a Source of that volume
	// goes on from there.
	AnnotationLineage = "volferry.io/lineage"
	// AnnotationFencedAt on a PersistentVolume is when it was taken from a user's claim.
	AnnotationFencedAt = "volferry.io/fenced-at"
	// AnnotationRebound on a claim of a user wakes the binder after its volume was given (back) to it.
	AnnotationRebound = "volferry.io/rebound"
	// AnnotationReplacedBy on a claim of a user names the Destination that deletes it by conflictPolicy Replace.
	AnnotationReplacedBy = "volferry.io/replaced-by"
	// AnnotationSequence on an image is the number of the transfer that it holds.
	AnnotationSequence = "volferry.io/seq"
	// LabelManagedBy with value ManagedBy and LabelOwnerUID mark the objects that the controller may delete.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "volferry"
	// LabelOwnerUID is the uid of the Source or Destination that an object belongs to.
	LabelOwnerUID = "volferry.io/owner-uid"
	// LabelRole is source or destination.
	LabelRole = "volferry.io/role"
	// LabelChild is the deterministic name of the child set an object belongs to; a Service selects by it.
	LabelChild = "volferry.io/child"
)

// Condition types.
const (
	ConditionAccepted          = "Accepted"
	ConditionDependenciesReady = "DependenciesReady"
	ConditionSynchronizing     = "Synchronizing"
	ConditionPeerVerified      = "PeerVerified"
	ConditionImageAvailable    = "ImageAvailable"
	ConditionPromoted          = "Promoted"
	ConditionFinalSynced       = "FinalSynced"
)

// Condition reasons.
const (
	ReasonAccepted         = "Accepted"
	ReasonInvalidSchedule  = "InvalidSchedule"
	ReasonInvalidTimeZone  = "InvalidTimeZone"
	ReasonUnknownParameter = "UnknownParameter"
	ReasonInvalidParameter = "InvalidParameter"

	ReasonReady                 = "Ready"
	ReasonSourcePVCNotFound     = "SourcePVCNotFound"
	ReasonSecretNotFound        = "SecretNotFound"
	ReasonSecretForbidden       = "SecretForbidden"
	ReasonStorageClassNotFound  = "StorageClassNotFound"
	ReasonSnapshotClassNotFound = "SnapshotClassNotFound"
	ReasonStagingMissing        = "StagingMissing"

	ReasonSyncInProgress     = "SyncInProgress"
	ReasonListening          = "Listening"
	ReasonWaitingForSchedule = "WaitingForSchedule"
	ReasonWaitingForTrigger  = "WaitingForTrigger"
	ReasonPaused             = "Paused"
	ReasonCleaningUp         = "CleaningUp"
	ReasonError              = "Error"

	ReasonVerified             = "Verified"
	ReasonNotContacted         = "NotContacted"
	ReasonPeerIdentityMismatch = "PeerIdentityMismatch"
	ReasonStaleEpoch           = "StaleEpoch"
	ReasonSourceBehindPeer     = "SourceBehindPeer"
	ReasonSourceVolumeChanged  = "SourceVolumeChanged"
	ReasonEngineIncompatible   = "EngineIncompatible"

	ReasonAvailable      = "Available"
	ReasonNoSyncYet      = "NoSyncYet"
	ReasonSnapshotFailed = "SnapshotFailed"

	// ReasonPromoted is also that of Synchronizing while a Destination is promoted.
	ReasonPromoted            = "Promoted"
	ReasonNotRequested        = "NotRequested"
	ReasonWaitingForFinalSync = "WaitingForFinalSync"
	ReasonNoImage             = "NoImage"
	ReasonImageInconsistent   = "ImageInconsistent"
	ReasonPVCConflict         = "PVCConflict"
	ReasonPVCTerminating      = "PVCTerminating"
	ReasonPVCIncompatible     = "PVCIncompatible"
	ReasonRebinding           = "Rebinding"
	ReasonDemoting            = "Demoting"
	ReasonInUse               = "InUse"

	// ReasonFenced is that of Synchronizing while a final sync keeps the schedule from running.
	ReasonFenced                = "Fenced"
	ReasonCompleted             = "Completed"
	ReasonQuiescing             = "Quiescing"
	ReasonWaitingForWorkloads   = "WaitingForWorkloads"
	ReasonWaitingForPVCDeletion = "WaitingForPVCDeletion"
	ReasonFencing               = "Fencing"
	ReasonSyncing               = "Syncing"
	ReasonVolumeGone            = "VolumeGone"
)

// Lineage places a volume among its peers: who replicates to whom, since which role change, and how far.
type Lineage struct {
	// ReplicationID is spec.replicationID as it was when the lineage began.
	// +optional
	ReplicationID string `json:"replicationID,omitempty"`
	// Epoch is COUNTER-NONCE; the counter rises with each promotion.
	// +optional
	Epoch string `json:"epoch,omitempty"`
	// Seq is the number of the last completed transfer.
	// +optional
	Seq int64 `json:"seq,omitempty"`
}

// Fence is on record while a volume is being taken from a claim of the resource's namespace into the vault.
type Fence struct {
	PVName string `json:"pvName"`
	// PVCName is the claim that the volume is taken from.
	PVCName string `json:"pvcName"`
	// PVCUID is the uid by which the volume refers to that claim, to be given back to; the claim may be gone.
	// +optional
	PVCUID string `json:"pvcUID,omitempty"`
	// Settled once the fence has stood for a while and nobody was found to use the volume.
	// +optional
	Settled bool `json:"settled,omitempty"`
}

// RestoreStatus tells what a resource that was restored from a backup waits for.
type RestoreStatus struct {
	// DetectedBy names the fact by which the restore was recognised.
	// +optional
	DetectedBy string `json:"detectedBy,omitempty"`
	// +optional
	AwaitingTell bool `json:"awaitingTell,omitempty"`
	// +optional
	AwaitingMirror bool `json:"awaitingMirror,omitempty"`
	// +optional
	AwaitingDependencies bool `json:"awaitingDependencies,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}

// MoverResult is the outcome of the last mover that ended.
type MoverResult struct {
	// Result is Successful, Partial or Failed.
	// +optional
	Result string `json:"result,omitempty"`
	// ExitCode as in docs/mover.md.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// LogTail is the end of the mover's log, at most 1 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LogTail string `json:"logTail,omitempty"`
}

// Retry counts the failures since the last success and says when the next try is due.
type Retry struct {
	// Failures in a row.
	Failures int32 `json:"failures"`
	// NextAttempt is the earliest time of the next try; empty when no retry will be made.
	// +optional
	NextAttempt *metav1.MicroTime `json:"nextAttempt,omitempty"`
	// Permanent is set when the cause is one that a retry cannot cure.
	// +optional
	Permanent bool `json:"permanent,omitempty"`
	// Generation of the resource whose attempt failed; an edit of the spec starts anew.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Capacity of the volume that was too small; Destination only.
	// +optional
	Capacity *VolumeSize `json:"capacity,omitempty"`
	// Requests that failed and are still to be served; Source only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Requests []string `json:"requests,omitempty"`
	// AttemptID of the sync that failed, which the next one repeats; Source only.
	// +optional
	AttemptID string `json:"attemptID,omitempty"`
}

// VolumeSize is a capacity; kept as a quantity so that it reads as in a claim.
type VolumeSize = resource.Quantity
