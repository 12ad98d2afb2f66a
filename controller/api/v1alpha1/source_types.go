// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SourceSpec is what the user asks for: which claim is replicated, how and when.
// +kubebuilder:validation:XValidation:rule="self.source == oldSelf.source",message="source is immutable: make a new Source for another claim"
// +kubebuilder:validation:XValidation:rule="self.replicationMethod == oldSelf.replicationMethod",message="replicationMethod is immutable: make a new Source for another method"
type SourceSpec struct {
	// Source is the name of the PersistentVolumeClaim to replicate, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Source string `json:"source"`

	// Trigger says when a sync starts; its parts add up. Without one the Source never starts by itself.
	// +optional
	Trigger SourceTrigger `json:"trigger,omitempty,omitzero"`

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

	// Paused keeps new syncs from starting; requests are remembered.
	// +optional
	// +kubebuilder:default=false
	Paused bool `json:"paused,omitempty"`

	// ReplicationID must be the same at both ends where it is set.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	ReplicationID string `json:"replicationID,omitempty"`

	// RetainSourceVolume sets the volume's reclaim policy to Retain while the Source exists, so that it outlives its claim
	// until a final sync is over. The original policy is given back.
	// +optional
	// +kubebuilder:default=true
	RetainSourceVolume *bool `json:"retainSourceVolume,omitempty"`

	// FinalSync asks for one last sync of a volume that no workload uses any more.
	// +optional
	FinalSync *FinalSyncSpec `json:"finalSync,omitempty"`

	// Acknowledge permits single conflicts by the token that a refusal printed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{12}$`
	Acknowledge []string `json:"acknowledge,omitempty"`
}

// SourceTrigger says when a sync starts.
type SourceTrigger struct {
	// Schedule is a cron expression of 5 fields, or 6 with leading seconds, or @hourly, @daily, .. or @every DURATION.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^\s*(@(hourly|daily|midnight|weekly|monthly|yearly|annually|every\s+\S+)|\S+(\s+\S+){4,5})\s*$`
	Schedule string `json:"schedule,omitempty"`
	// TimeZone is the IANA name of the zone the schedule is meant in.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// InitialSync tells whether the first sync waits for the first tick or starts at once.
	// +optional
	// +kubebuilder:default=Wait
	// +kubebuilder:validation:Enum=Wait;Immediate
	InitialSync string `json:"initialSync,omitempty"`
	// OnDemand asks for one sync each time it is given a value that status.lastOnDemand does not have.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	OnDemand string `json:"onDemand,omitempty"`
	// Webhook opens the HTTPS trigger for this Source.
	// +optional
	Webhook *WebhookTrigger `json:"webhook,omitempty"`
}

// InitialSyncImmediate starts the first sync at once.
const InitialSyncImmediate = "Immediate"

// WebhookTrigger authenticates callers of the HTTPS trigger.
type WebhookTrigger struct {
	// TokenSecret names a Secret of the same namespace; its key `token` holds at least 16 bytes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TokenSecret string `json:"tokenSecret"`
}

// FinalSyncSpec asks for the last sync before a planned move.
type FinalSyncSpec struct {
	// ID names this final sync; a new id is a new run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// WaitForPVCDeletion waits until the claim is being deleted or gone.
	// +optional
	// +kubebuilder:default=false
	WaitForPVCDeletion bool `json:"waitForPVCDeletion,omitempty"`
	// WaitForWorkloads waits until each of these is absent or scaled to zero.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	WaitForWorkloads []WorkloadReference `json:"waitForWorkloads,omitempty"`
	// AfterSync tells what becomes of the volume afterwards.
	// +optional
	// +kubebuilder:default=Hold
	// +kubebuilder:validation:Enum=Hold;Release
	AfterSync string `json:"afterSync,omitempty"`
}

// AfterSyncRelease gives the volume back after the final sync.
const AfterSyncRelease = "Release"

// WorkloadReference names a workload of the same namespace.
type WorkloadReference struct {
	// +required
	// +kubebuilder:validation:Enum=StatefulSet;Deployment;ReplicaSet;Job
	Kind string `json:"kind"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SourcePhase is a one-word summary for people; programs read the conditions.
// +kubebuilder:validation:Enum=Pending;Idle;Syncing;FinalSync;Fenced;Gated;Error
type SourcePhase string

// Phases of a Source.
const (
	SourcePending SourcePhase = "Pending"
	SourceIdle    SourcePhase = "Idle"
	SourceSyncing SourcePhase = "Syncing"
	SourceError   SourcePhase = "Error"
	// SourceFinalSync is until the final sync has completed, SourceFenced from then on.
	SourceFinalSync SourcePhase = "FinalSync"
	SourceFenced    SourcePhase = "Fenced"
)

// ActiveSync is written before the first side effect of a sync and removed at its end. While it is there the sync is not
// over, whatever became of the controller.
type ActiveSync struct {
	// Seq is the number of the transfer: one more than the last completed one.
	Seq int64 `json:"seq"`
	// AttemptID is a uuid that every retry of this sync repeats.
	AttemptID string `json:"attemptID"`
	// Start of the sync.
	Start metav1.MicroTime `json:"start"`
	// Stage is Copying, Moving or CleaningUp.
	// +kubebuilder:validation:Enum=Copying;Moving;CleaningUp
	Stage SyncStage `json:"stage"`
	// Requests that this sync serves: schedule:TIME, onDemand:VALUE, webhook:ID, initial.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Requests []string `json:"requests,omitempty"`
	// Outcome is set with stage CleaningUp: what is left to do is the same for both.
	// +optional
	// +kubebuilder:validation:Enum=Succeeded;Failed;Abandoned
	Outcome string `json:"outcome,omitempty"`
	// FinalSyncID is set where this is the final sync of that id.
	// +optional
	FinalSyncID string `json:"finalSyncID,omitempty"`
	// Try counts the mover Jobs of this sync, beginning with 1.
	// +optional
	Try int32 `json:"try,omitempty"`
}

// SyncStage is where a sync stands.
type SyncStage string

// Stages of a sync, in their order.
const (
	StageCopying    SyncStage = "Copying"
	StageMoving     SyncStage = "Moving"
	StageCleaningUp SyncStage = "CleaningUp"
)

// SourceVolume is the identity of the volume behind the claim, recorded when it was accepted.
type SourceVolume struct {
	// +optional
	PVCUID string `json:"pvcUID,omitempty"`
	// +optional
	PVName string `json:"pvName,omitempty"`
	// Driver of the volume: the CSI driver's name, or the kind of an in-tree source.
	// +optional
	Driver string `json:"driver,omitempty"`
	// HandleHash identifies the volume in its storage without naming it.
	// +optional
	HandleHash string `json:"handleHash,omitempty"`
	// +optional
	VolumeMode string `json:"volumeMode,omitempty"`
	// +optional
	Capacity *VolumeSize `json:"capacity,omitempty"`
	// +optional
	OriginalReclaimPolicy string `json:"originalReclaimPolicy,omitempty"`
}

// FinalSyncStatus is where a final sync stands.
type FinalSyncStatus struct {
	// +optional
	ID string `json:"id,omitempty"`
	// +optional
	Phase string `json:"phase,omitempty"`
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// +optional
	Completed *metav1.Time `json:"completed,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// ReplacedBy is the volume that the claim has by now, where it is another one than is synced.
	// +optional
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// SourceLineage is the lineage of a Source, with the peer's volume.
type SourceLineage struct {
	Lineage `json:",inline"`
	// PeerVolumeID is the volume at the other end, as it introduced itself.
	// +optional
	PeerVolumeID string `json:"peerVolumeID,omitempty"`
}

// SourceStatus is written by the controller alone.
type SourceStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedUID is the metadata.uid under which this status was made.
	// +optional
	ObservedUID string `json:"observedUID,omitempty"`
	// +optional
	Phase SourcePhase `json:"phase,omitempty"`
	// LastSyncTime is the end of the last completed sync.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
	// LastSyncStartTime is the start of the sync that runs, or of the last one.
	// +optional
	LastSyncStartTime *metav1.Time `json:"lastSyncStartTime,omitempty"`
	// +optional
	LastSyncDuration *metav1.Duration `json:"lastSyncDuration,omitempty"`
	// NextSyncTime is the next tick of the schedule.
	// +optional
	NextSyncTime *metav1.Time `json:"nextSyncTime,omitempty"`
	// LastScheduleTime is the last tick that was taken into account.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// Schedule and time zone that NextSyncTime was computed from.
	// +optional
	ObservedSchedule string `json:"observedSchedule,omitempty"`
	// LastOnDemand is the last value of spec.trigger.onDemand that was served.
	// +optional
	LastOnDemand string `json:"lastOnDemand,omitempty"`
	// LastWebhookRequest is the last webhook request that was served.
	// +optional
	LastWebhookRequest string `json:"lastWebhookRequest,omitempty"`
	// InitialSyncDone is set once the first sync was started.
	// +optional
	InitialSyncDone bool `json:"initialSyncDone,omitempty"`
	// +optional
	ActiveSync *ActiveSync `json:"activeSync,omitempty"`
	// +optional
	SourceVolume *SourceVolume `json:"sourceVolume,omitempty"`
	// +optional
	Lineage *SourceLineage `json:"lineage,omitempty"`
	// +optional
	FinalSync *FinalSyncStatus `json:"finalSync,omitempty"`
	// Fence is there while the volume is in the vault for the final sync, or goes there.
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

// Source replicates one claim of its namespace to one Destination, one way.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vsrc,categories=volferry
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.replicationMethod`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.trigger.schedule`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Last Sync",type=date,JSONPath=`.status.lastSyncTime`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.status.lastSyncDuration`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextSyncTime`
// +kubebuilder:printcolumn:name="FinalSync",type=string,JSONPath=`.status.finalSync.phase`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Source struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SourceSpec `json:"spec"`
	// +optional
	Status SourceStatus `json:"status,omitempty,omitzero"`
}

// SourceList is a list of Sources.
//
// +kubebuilder:object:root=true
type SourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Source `json:"items"`
}
