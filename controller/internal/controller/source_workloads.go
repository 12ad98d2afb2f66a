// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets;deployments;replicasets,verbs=get

// busyWorkload names the first listed workload that has not ended; empty: all are absent, or scaled to zero in the eyes of
// their controllers.
func (r *sourceRun) busyWorkload(ctx context.Context) (string, error) {
	for _, reference := range r.source.Spec.FinalSync.WaitForWorkloads {
		key := client.ObjectKey{Namespace: r.source.Namespace, Name: reference.Name}
		why, err := r.workload(ctx, reference.Kind, key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read %s %s: %w", reference.Kind, key.Name, err)
		}
		if why != "" {
			return fmt.Sprintf("%s %s %s", reference.Kind, key.Name, why), nil
		}
	}
	return "", nil
}

func (r *sourceRun) workload(ctx context.Context, kind string, key client.ObjectKey) (string, error) {
	switch kind {
	case "StatefulSet":
		object := &appsv1.StatefulSet{}
		err := r.APIReader.Get(ctx, key, object)
		return scaled(object.Generation, object.Status.ObservedGeneration, object.Spec.Replicas, object.Status.Replicas), err
	case "Deployment":
		object := &appsv1.Deployment{}
		err := r.APIReader.Get(ctx, key, object)
		return scaled(object.Generation, object.Status.ObservedGeneration, object.Spec.Replicas, object.Status.Replicas), err
	case "ReplicaSet":
		object := &appsv1.ReplicaSet{}
		err := r.APIReader.Get(ctx, key, object)
		return scaled(object.Generation, object.Status.ObservedGeneration, object.Spec.Replicas, object.Status.Replicas), err
	case "Job":
		object := &batchv1.Job{}
		err := r.APIReader.Get(ctx, key, object)
		over := ptr.Deref(object.Spec.Suspend, false) || object.Status.CompletionTime != nil || jobFailed(object)
		if running := object.Status.Active + ptr.Deref(object.Status.Terminating, 0); running > 0 || !over {
			return fmt.Sprintf("has %d pods and is not over", running), err
		}
		return "", err
	}
	return "is of a kind that is not known", nil
}

func jobFailed(job *batchv1.Job) bool {
	return moverJob{job: job}.condition(batchv1.JobFailed) != nil
}

// scaled says why a workload is not down to zero; empty: it is.
func scaled(generation, observed int64, wanted *int32, replicas int32) string {
	switch {
	case ptr.Deref(wanted, 1) > 0:
		return fmt.Sprintf("is to have %d replicas; scale it to 0", ptr.Deref(wanted, 1))
	case observed < generation:
		return "is being changed"
	case replicas > 0:
		return fmt.Sprintf("still has %d replicas", replicas)
	}
	return ""
}
