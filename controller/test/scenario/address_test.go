// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/names"
)

// The status shows an address and a port that a Source elsewhere can use, for each type of Service.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "lb"}}
	d.Spec.Parameters = map[string]string{"capacity": "8Mi", "copyMethod": "Direct", "serviceType": "LoadBalancer", "port": "9000"}
	w.create(d)
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, "lb")}
	w.eventually(20*time.Second, "the Service", func() bool { return w.client.Get(w.ctx, key, service) == nil })
	if got := w.destination("lb").Status.MethodStatus["address"]; got != "" {
		t.Errorf("an address is shown before the load balancer has one: %s", got)
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}
	w.must(w.client.Status().Update(w.ctx, service))
	w.eventually(20*time.Second, "the load balancer's address", func() bool {
		status := w.destination("lb").Status.MethodStatus
		return status["address"] == "lb.example.com" && status["port"] == "9000"
	})

	d = &v1alpha1.Destination{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "node"}}
	d.Spec.Parameters = map[string]string{"capacity": "8Mi", "copyMethod": "Direct", "serviceType": "NodePort"}
	w.create(d)
	w.eventually(30*time.Second, "the node's address and port", func() bool {
		status := w.destination("node").Status.MethodStatus
		key.Name = names.Destination(w.namespace, "node")
		return w.client.Get(w.ctx, key, service) == nil && status["address"] != "" && status["address"] != service.Spec.ClusterIP &&
			status["port"] == strconv.Itoa(int(service.Spec.Ports[0].NodePort))
	})
}

// A volume that can be attached to one node only is read where it is in use.
func TestDirectMoverFollowsTheConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.small()
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app"},
		Spec: corev1.PodSpec{
			NodeName:    "nodeless",
			Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "app", Image: "app"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		},
	})
	w.ask("p", "a")
	pods := &corev1.PodList{}
	w.eventually(20*time.Second, "the mover's pod", func() bool {
		w.must(w.client.List(w.ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelRole: names.RoleSource}))
		return len(pods.Items) > 0
	})
	spec := pods.Items[0].Spec
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if field := required.NodeSelectorTerms[0].MatchFields[0]; field.Key != "metadata.name" || field.Values[0] != "nodeless" {
		t.Errorf("the mover is bound to %+v", field)
	}
	tolerated := false
	for _, toleration := range spec.Tolerations {
		tolerated = tolerated || toleration.Key == "dedicated"
	}
	if !tolerated {
		t.Errorf("the mover lacks the consumer's tolerations: %+v", spec.Tolerations)
	}
	w.served("p", "a")
	w.must(w.client.Delete(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app"}},
		&client.DeleteOptions{GracePeriodSeconds: new(int64)}))
}
