// SPDX-License-Identifier: Apache-2.0

package nodeless

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// proxy stands for kube-proxy. While a ready pod is behind a Service, each of its ports is a listening socket on
// the ClusterIP that forwards to that pod; otherwise connections are refused.
type proxy struct {
	client client.Client

	mutex  sync.Mutex
	routes map[client.ObjectKey]map[string]*route // Service -> listening address -> route
}

// route is one listening socket.
type route struct {
	listener net.Listener
	target   string

	mutex       sync.Mutex
	connections map[net.Conn]struct{}
}

func newProxy(c client.Client) *proxy {
	return &proxy{client: c, routes: map[client.ObjectKey]map[string]*route{}}
}

func (p *proxy) setUp(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("proxy").WithOptions(anyName).
		For(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(p.servicesOf)).
		Complete(p)
}

// servicesOf finds the Services whose routes a change of the pod may change.
func (p *proxy) servicesOf(ctx context.Context, pod client.Object) []reconcile.Request {
	services := &corev1.ServiceList{}
	if err := p.client.List(ctx, services, client.InNamespace(pod.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for index := range services.Items {
		service := &services.Items[index]
		if selectorOf(service).Matches(labels.Set(pod.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)})
		}
	}
	return requests
}

// selectorOf gives what a Service selects; one without a selector selects nothing.
func selectorOf(service *corev1.Service) labels.Selector {
	if len(service.Spec.Selector) == 0 {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(service.Spec.Selector)
}

// Reconcile brings the sockets of one Service in line with its pods.
func (p *proxy) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	wanted, err := p.wanted(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	current := p.routes[request.NamespacedName]
	for address, open := range current {
		if wanted[address] != open.target {
			_ = open.listener.Close()
			delete(current, address)
		}
	}
	for address, target := range wanted {
		if current[address] != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return ctrl.Result{RequeueAfter: retryDelay}, nil
		}
		if current == nil {
			current = map[string]*route{}
			p.routes[request.NamespacedName] = current
		}
		current[address] = &route{listener: listener, target: target, connections: map[net.Conn]struct{}{}}
		go current[address].serve()
	}
	return ctrl.Result{}, nil
}

// wanted maps each address that the Service should have now to the pod's address behind it.
func (p *proxy) wanted(ctx context.Context, key client.ObjectKey) (map[string]string, error) {
	service := &corev1.Service{}
	if err := p.client.Get(ctx, key, service); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if address := net.ParseIP(service.Spec.ClusterIP); address == nil || service.DeletionTimestamp != nil {
		return nil, nil
	}
	pods := &corev1.PodList{}
	if err := p.client.List(ctx, pods, client.InNamespace(key.Namespace),
		client.MatchingLabelsSelector{Selector: selectorOf(service)}); err != nil {
		return nil, err
	}
	wanted := map[string]string{}
	for index := range pods.Items {
		pod := &pods.Items[index]
		if !podReady(pod) {
			continue
		}
		for _, port := range service.Spec.Ports {
			if number := targetPort(&port, pod); number != 0 {
				wanted[net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(port.Port))] =
					net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(number))
			}
		}
		break // one pod is enough, and it stays the same one
	}
	return wanted, nil
}

func podReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// targetPort gives the number of the pod's port behind the Service's, 0 if the pod has none of that name.
func targetPort(port *corev1.ServicePort, pod *corev1.Pod) int32 {
	if port.TargetPort.Type == intstr.Int {
		if port.TargetPort.IntVal == 0 {
			return port.Port
		}
		return port.TargetPort.IntVal
	}
	for _, container := range pod.Spec.Containers {
		for _, declared := range container.Ports {
			if declared.Name == port.TargetPort.StrVal {
				return declared.ContainerPort
			}
		}
	}
	return 0
}

// CutConnections breaks all connections that go through a Service, as a failing network would, and returns how many.
func (n *Node) CutConnections(namespace, service string) int {
	n.proxy.mutex.Lock()
	defer n.proxy.mutex.Unlock()
	cut := 0
	for _, open := range n.proxy.routes[client.ObjectKey{Namespace: namespace, Name: service}] {
		cut += open.cut()
	}
	return cut
}

func (p *proxy) closeAll() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, routes := range p.routes {
		for _, open := range routes {
			_ = open.listener.Close()
			open.cut()
		}
	}
}

func (r *route) serve() {
	for {
		connection, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.forward(connection)
	}
}

// forward copies both ways until both ends have finished.
func (r *route) forward(outer net.Conn) {
	defer outer.Close()
	inner, err := net.Dial("tcp", r.target)
	if err != nil {
		// Without a program on the pod's port the client must see a refusal, not an orderly end.
		_ = outer.(*net.TCPConn).SetLinger(0)
		return
	}
	defer inner.Close()
	r.remember(outer, inner)
	defer r.forget(outer, inner)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{outer, inner}, {inner, outer}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

func (r *route) remember(connections ...net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, connection := range connections {
		r.connections[connection] = struct{}{}
	}
}

func (r *route) forget(connections ...net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, connection := range connections {
		delete(r.connections, connection)
	}
}

// cut resets the connections, and counts them by pairs.
func (r *route) cut() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for connection := range r.connections {
		_ = connection.(*net.TCPConn).SetLinger(0)
		_ = connection.Close()
	}
	return len(r.connections) / 2
}
