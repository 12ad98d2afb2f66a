// SPDX-License-Identifier: Apache-2.0

package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/params"
)

// KeySecret holds the pre-shared key of a Destination in the vault.
func KeySecret(child Child, id, psk []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: child.meta(nil),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"id": id, "psk": psk},
	}
}

// ClosedService has the address of Service and leads to nobody. It still has a selector: one that is taken away would leave
// the endpoints as they are.
func ClosedService(child Child, in *params.DestinationParams) *corev1.Service {
	service := Service(child, in)
	service.Spec.Selector[v1alpha1.LabelChild] = "none"
	return service
}

// Service is how a Source reaches the receive mover of a Destination.
func Service(child Child, in *params.DestinationParams) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: child.meta(in.ServiceAnnotations),
		Spec: corev1.ServiceSpec{
			Type:     in.ServiceType,
			Selector: map[string]string{v1alpha1.LabelChild: child.Set, v1alpha1.LabelRole: child.role()},
			Ports: []corev1.ServicePort{{
				Name: "transfer", Protocol: corev1.ProtocolTCP, Port: in.Port, TargetPort: intstr.FromInt32(params.DefaultPort),
			}},
		},
	}
}
