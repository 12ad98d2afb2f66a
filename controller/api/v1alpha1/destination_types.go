// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DestinationSpec is what the user asks for: a volume that receives, and whether it is promoted.
// +kubebuilder:validation:XValidation:rule="self.replicationMethod == oldSelf.replicationMethod",message="replicationMethod is immutable: make a new Destination for another method"
type DestinationSpec struct {
	// ReplicationMethod is Rsync (built in), or the name of an external method such as example.com/async, which is then
	// left to another controller. Immutable.
	// +optional
	// +kubebuilder:default=Rsync
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([Rr]sync|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`
	ReplicationMethod string `json:"replicationMethod,omitempty"`

	// Parameters of the method; those of Rsync are listed in docs/controller.md.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a parameter's value has at most 8192 bytes"
	Parameters map[string]string `json:"parameters,omitempty"`

	// Paused ends the listener; what was received stays.
	// +optional
	// +kubebuilder:default=false
	Paused bool `json:"paused,omitempty"`

	// ReplicationID must be the same at both ends where it is set.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	ReplicationID string `json:"replicationID,omitempty"`

	// Acknowledge permits single conflicts by the token that a refusal printed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{12}$`
	Acknowledge []string `json:"acknowledge,omitempty"`

	// Promote asks for the received volume as a claim of this namespace.
	// +optional
	Promote *PromoteSpec `json:"promote,omitempty"`

	// Adopt takes the volume of a claim that was left behind as the staging volume.
	// +optional
	Adopt *AdoptSpec `json:"adopt,omitempty"`

	// DeletionPolicy decides what becomes of an unpromoted staging volume when the Destination is deleted.
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Retain
	DeletionPolicy string `json:"deletionPolicy,omitempty"`
}

// Values of PromoteSpec.
const (
	// ImageLatest promotes what was received last.
	ImageLatest = "Latest"
	// ConflictReplace puts the promoted volume in the place of the one that the claim is bound to.
	ConflictReplace = "Replace"
)

// DeletionRetain keeps the staging volume.
const DeletionRetain = "Retain"

// PromoteSpec asks for the received volume as a claim.
type PromoteSpec struct {
	// PVCName of the claim; the Destination's own name where empty.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PVCName string `json:"pvcName,omitempty"`
	// Image is Latest or the name of a listed image.
	// +optional
	// +kubebuilder:default=Latest
	// +kubebuilder:validation:MaxLength=253
	Image string `json:"image,omitempty"`
	// RequireFinalSync waits for the final sync of this id.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RequireFinalSync string `json:"requireFinalSync,omitempty"`
	// ConflictPolicy decides about a claim of that name which is bound to another volume.
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:Enum=Fail;Replace
	ConflictPolicy string `json:"conflictPolicy,omitempty"`
	// ReclaimPolicy of the volume; the recorded original one where empty.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Retain
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty"`
	// Metadata of the claim.
	// +optional
	Metadata *PromoteMetadata `json:"metadata,omitempty"`
	// AllowInconsistent promotes a volume whose last transfer was cut.
	// +optional
	// +kubebuilder:default=false
	AllowInconsistent bool `json:"allowInconsistent,omitempty"`
}

// PromoteMetadata is put on the promoted claim.
type PromoteMetadata struct {
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// AdoptSpec names a claim that was left behind.
type AdoptSpec struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PVCName string `json:"pvcName"`
}

// DestinationPhase is a one-word summary for people; programs read the conditions.
// +kubebuilder:validation:Enum=Pending;Listening;Promoting;Primary;Demoting;Gated;Error
type DestinationPhase string

// Phases of a Destination.
const (
	DestinationPending   DestinationPhase = "Pending"
	DestinationListening DestinationPhase = "Listening"
	DestinationPromoting DestinationPhase = "Promoting"
	DestinationPrimary   DestinationPhase = "Primary"
	DestinationDemoting  DestinationPhase = "Demoting"
	DestinationError     DestinationPhase = "Error"
)

// StagingVolume is the volume in the vault that receives.
type StagingVolume struct {
	// +optional
	PVName string `json:"pvName,omitempty"`
	// +optional
	Capacity *VolumeSize `json:"capacity,omitempty"`
	// Dirty while a transfer that has begun is not known to have completed.
	// +optional
	Dirty bool `json:"dirty,omitempty"`
	// Listener is the uid of the receive Job for which Dirty was set. Where that Job says that nobody connected, the volume
	// is as it was.
	// +optional
	Listener string `json:"listener,omitempty"`
	// Cut is set where a transfer into the volume was found to be cut.
	// +optional
	Cut bool `json:"cut,omitempty"`
}

// Image is a point in time of the staging volume.
type Image struct {
	// Kind is VolumeSnapshot, PersistentVolumeClaim (Clone) or Staging (Direct).
	Kind string `json:"kind"`
	// Name of the object in the vault.
	Name string `json:"name"`
	// Seq is the transfer it holds.
	Seq int64 `json:"seq"`
	// Time the transfer completed.
	Time metav1.Time `json:"time"`
}

// PendingImage is written before an image is made and removed once it is ready.
type PendingImage struct {
	Image `json:",inline"`
	// FinalSyncID of the transfer.
	// +optional
	FinalSyncID string `json:"finalSyncID,omitempty"`
	// JobUID is the receive Job whose transfer it holds.
	JobUID string `json:"jobUID"`
}

// Received describes the last completed transfer.
type Received struct {
	// +optional
	Seq int64 `json:"seq,omitempty"`
	// +optional
	FinalSyncID string `json:"finalSyncID,omitempty"`
	// Bytes that came over the wire.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// JobUID of the receive Job, which tells two transfers apart.
	// +optional
	JobUID string `json:"jobUID,omitempty"`
	// AttemptID by which the Source tells a retry of this transfer from another one of the same number.
	// +optional
	AttemptID string `json:"attemptID,omitempty"`
}

// DestinationLineage is the lineage of a Destination, with the volume it receives.
type DestinationLineage struct {
	Lineage `json:",inline"`
	// SourceVolumeID is pinned at the first transfer.
	// +optional
	SourceVolumeID string `json:"sourceVolumeID,omitempty"`
	// HighestEpoch is the greatest counter that an epoch has had here. A promotion begins a greater one, also where a
	// Source of an earlier epoch was permitted meanwhile.
	// +optional
	HighestEpoch int64 `json:"highestEpoch,omitempty"`
}

// PromotionStatus is where a promotion stands.
type PromotionStatus struct {
	// +optional
	State PromotionState `json:"state,omitempty"`
	// Step of state Promoting.
	// +optional
	Step PromotionStep `json:"step,omitempty"`
	// PVCName is the claim that shows the volume to the user.
	// +optional
	PVCName string `json:"pvcName,omitempty"`
	// PVName is the volume.
	// +optional
	PVName string `json:"pvName,omitempty"`
	// Claim of the vault that has the volume before it is the user's.
	// +optional
	Claim string `json:"claim,omitempty"`
	// Image that the volume holds.
	// +optional
	Image string `json:"image,omitempty"`
	// Epoch that the promotion begins.
	// +optional
	Epoch string `json:"epoch,omitempty"`
	// Time at which the state began.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// PromotionState is what becomes of the volume, or became.
// +kubebuilder:validation:Enum=Promoting;Promoted;Demoting
type PromotionState string

// States of a promotion; without one the volume is a hidden secondary.
const (
	PromotionPromoting PromotionState = "Promoting"
	PromotionPromoted  PromotionState = "Promoted"
	PromotionDemoting  PromotionState = "Demoting"
)

// PromotionStep is what a promotion is at.
// +kubebuilder:validation:Enum=Stopping;Restoring;Rebinding
type PromotionStep string

// Steps of a promotion, in their order.
const (
	StepStopping  PromotionStep = "Stopping"
	StepRestoring PromotionStep = "Restoring"
	StepRebinding PromotionStep = "Rebinding"
)

// DestinationStatus is written by the controller alone.
type DestinationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedUID is the metadata.uid under which this status was made.
	// +optional
	ObservedUID string `json:"observedUID,omitempty"`
	// +optional
	Phase DestinationPhase `json:"phase,omitempty"`
	// +optional
	Staging *StagingVolume `json:"staging,omitempty"`
	// +optional
	LatestImage *Image `json:"latestImage,omitempty"`
	// Images that are ready, newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Images []Image `json:"images,omitempty"`
	// PendingImage is being made.
	// +optional
	PendingImage *PendingImage `json:"pendingImage,omitempty"`
	// +optional
	LastReceived *Received `json:"lastReceived,omitempty"`
	// PeerSize is the size of the source's volume, as the Source said when it connected last.
	// +optional
	PeerSize *VolumeSize `json:"peerSize,omitempty"`
	// +optional
	Lineage *DestinationLineage `json:"lineage,omitempty"`
	// +optional
	Promotion *PromotionStatus `json:"promotion,omitempty"`
	// Fence is there while a volume is being taken from a claim: by a demotion, or to adopt it.
	// +optional
	Fence *Fence `json:"fence,omitempty"`
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`
	// +optional
	LatestMover *MoverResult `json:"latestMover,omitempty"`
	// +optional
	Retry *Retry `json:"retry,omitempty"`
	// MethodStatus is what the method reports; keys of Rsync are listed in docs/controller.md.
	// +optional
	MethodStatus map[string]string `json:"methodStatus,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Destination receives one volume from one Source and keeps it hidden until it is promoted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vdst,categories=volferry
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.replicationMethod`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.methodStatus.address`
// +kubebuilder:printcolumn:name="Last Sync",type=date,JSONPath=`.status.lastReceived.time`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.latestImage.name`
// +kubebuilder:printcolumn:name="Promoted",type=string,JSONPath=`.status.conditions[?(@.type=="Promoted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Destination struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec DestinationSpec `json:"spec"`
	// +optional
	Status DestinationStatus `json:"status,omitempty,omitzero"`
}

// DestinationList is a list of Destinations.
//
// +kubebuilder:object:root=true
type DestinationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Destination `json:"items"`
}
