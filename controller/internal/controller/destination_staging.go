// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
)

// ensureStaging makes the volume that receives, and grows it where the user asks for more. It is never made twice: one
// that was there and is gone may have held the only copy.
func (r *destinationRun) ensureStaging(ctx context.Context) error {
	claim := &corev1.PersistentVolumeClaim{}
	err := r.APIReader.Get(ctx, r.key(r.childSet), claim)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	status := &r.destination.Status
	switch never := status.LatestImage == nil && status.LastReceived == nil; {
	case status.Fence != nil, apierrors.IsNotFound(err) && never && r.destination.Spec.Adopt != nil:
		if claim, err = r.adoptVolume(ctx); err != nil {
			return err
		}
	case apierrors.IsNotFound(err):
		if !never {
			return r.missing(v1alpha1.ReasonStagingMissing, fmt.Sprintf(
				"staging claim %s is gone although transfers were received into it; restore it, or make a new Destination", r.childSet))
		}
		if claim, err = r.createStaging(ctx); err != nil {
			return err
		}
	case never && r.destination.Spec.Adopt != nil:
		if err := r.makeRoom(ctx, claim); err != nil {
			return err
		}
	}
	if _, err := takeOver(ctx, r.Client, r.destination, claim); err != nil {
		return err
	}
	if err := r.fitsAdopted(ctx, claim); err != nil {
		return err
	}
	if err := r.growStaging(ctx, claim); err != nil {
		return err
	}
	r.staging = claim
	staging := v1alpha1.StagingVolume{}
	if status.Staging != nil {
		staging = *status.Staging
	}
	staging.PVName, staging.Capacity = claim.Spec.VolumeName, nil
	status.Staging = &staging
	if capacity, there := claim.Status.Capacity[corev1.ResourceStorage]; there {
		status.Staging.Capacity = ptr.To(capacity)
	}
	message := "the staging volume and the key are there"
	if r.destination.Spec.Adopt != nil {
		taken, err := r.wasTaken(ctx, claim)
		if err != nil {
			return err
		}
		if !taken {
			message += fmt.Sprintf("; spec.adopt has no effect, because volume %s was made to receive before", claim.Spec.VolumeName)
		}
	}
	r.set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonReady, message)
	return nil
}

func (r *destinationRun) createStaging(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	if class := ptr.Deref(r.params.StorageClassName, ""); class != "" {
		err := r.Client.Get(ctx, client.ObjectKey{Name: class}, &storagev1.StorageClass{})
		if apierrors.IsNotFound(err) {
			return nil, r.missing(v1alpha1.ReasonStorageClassNotFound, fmt.Sprintf("StorageClass %s does not exist", class))
		}
		if err != nil {
			return nil, err
		}
	}
	claim := build.Claim(build.ClaimInput{
		Child:            r.child(r.childSet),
		StorageClassName: r.params.StorageClassName,
		AccessModes:      r.params.AccessModes,
		VolumeMode:       r.params.VolumeMode,
		Size:             *r.params.Capacity,
	})
	return claim, apply(ctx, r.Client, claim)
}

// growStaging asks for a larger volume where the user wants one, or where the source's volume has grown. Volumes never
// shrink, and one that is not bound yet cannot grow.
func (r *destinationRun) growStaging(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	current := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	wanted := current
	for _, size := range []*quantity{r.params.Capacity, r.destination.Status.PeerSize} {
		if size != nil && size.Cmp(wanted) > 0 {
			wanted = *size
		}
	}
	if actual, there := claim.Status.Capacity[corev1.ResourceStorage]; !there || wanted.Cmp(actual) <= 0 || wanted.Cmp(current) == 0 {
		return nil
	}
	expandable, err := r.expandable(ctx, claim)
	if err != nil {
		return err
	}
	if !expandable {
		return r.tooSmall(ctx, wanted, current)
	}
	patched := claim.DeepCopy()
	patched.Spec.Resources.Requests[corev1.ResourceStorage] = wanted
	if err := r.Client.Patch(ctx, patched, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return fmt.Errorf("expand staging claim %s: %w", claim.Name, err)
	}
	*claim = *patched
	return nil
}

// tooSmall refuses a volume that cannot grow. Files of a larger volume may well fit into a smaller one, so there the
// user's own number, or a transfer that has failed for lack of space, decides; a device must fit whole.
func (r *destinationRun) tooSmall(ctx context.Context, wanted, current quantity) error {
	asked := r.params.Capacity != nil && r.params.Capacity.Cmp(current) > 0
	retry := r.destination.Status.Retry
	failed := retry != nil && retry.Permanent && retry.Generation == r.destination.Generation
	if !asked && !failed && r.params.VolumeMode != corev1.PersistentVolumeBlock {
		return nil
	}
	return r.reject(ctx, v1alpha1.ReasonInvalidParameter, fmt.Sprintf(
		"parameter capacity: %s are needed, the staging volume has %s and its storage class does not allow expansion; "+
			"make a new Destination with a larger capacity", &wanted, &current))
}

func (r *destinationRun) expandable(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	name := ptr.Deref(claim.Spec.StorageClassName, "")
	if name == "" {
		return false, nil
	}
	class := &storagev1.StorageClass{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return ptr.Deref(class.AllowVolumeExpansion, false), nil
}

// ensureService gives the Source an address to push to.
func (r *destinationRun) ensureService(ctx context.Context) error {
	return r.applyService(ctx, build.Service(r.child(r.childSet), r.params))
}

// closeService lets nobody in any more, so that a volume that is about to be promoted stays as it is. The address stays.
func (r *destinationRun) closeService(ctx context.Context) error {
	return r.applyService(ctx, build.ClosedService(r.child(r.childSet), r.params))
}

func (r *destinationRun) applyService(ctx context.Context, wanted *corev1.Service) error {
	found := &corev1.Service{}
	err := r.APIReader.Get(ctx, r.key(r.childSet), found)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	hash := build.Hash([]any{wanted.Spec, r.params.ServiceAnnotations, r.destination.UID})
	if err != nil || found.Annotations[v1alpha1.AnnotationInputHash] != hash {
		wanted.Annotations[v1alpha1.AnnotationInputHash] = hash
		if err := apply(ctx, r.Client, wanted); err != nil {
			return err
		}
		found = wanted
	}
	r.reportAddress(ctx, found)
	return nil
}

// reportAddress shows where the Source has to push to, once that is known.
func (r *destinationRun) reportAddress(ctx context.Context, service *corev1.Service) {
	host, port := service.Spec.ClusterIP, r.params.Port
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		host = ""
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if host = ingress.Hostname; host == "" {
				host = ingress.IP
			}
			if host != "" {
				break
			}
		}
	case corev1.ServiceTypeNodePort:
		host = r.listenerNode(ctx)
		if len(service.Spec.Ports) > 0 {
			port = service.Spec.Ports[0].NodePort
		}
	}
	before := r.destination.Status.MethodStatus["address"]
	r.report("address", host)
	r.report("port", strconv.Itoa(int(port)))
	if host != "" && host != before {
		r.note(r.destination, corev1.EventTypeNormal, "AddressAssigned", "EnsureService",
			"push to %s", net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
}

// listenerNode is the address of the node on which the receive mover runs: nodes themselves are not read. While none
// runs the last one is kept, since every node forwards the port.
func (r *destinationRun) listenerNode(ctx context.Context) string {
	mover, err := r.findJob(ctx, r.key(r.childSet))
	if err == nil && mover.pod != nil && mover.pod.Status.HostIP != "" {
		return mover.pod.Status.HostIP
	}
	return r.destination.Status.MethodStatus["address"]
}
