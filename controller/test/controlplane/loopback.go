// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Loopback is a part of 127.0.0.0/8 that belongs to one plane: Services get their ClusterIP out of it and
// pods their address. So a program can listen on either without privileges and without a network
// namespace, and planes that run at the same time do not meet.
type Loopback struct {
	// ServiceRange is where kube-apiserver takes each ClusterIP from, as a prefix.
	ServiceRange string

	lock  net.Listener
	mutex sync.Mutex
	next  netip.Addr
}

const (
	firstSlot = 96
	lastSlot  = 126
	slotPort  = 65000
)

// reserveLoopback takes the first slot that no other plane holds. A slot is held by a listening socket, which
// ends with its process.
func reserveLoopback() (*Loopback, error) {
	for slot := firstSlot; slot <= lastSlot; slot++ {
		lock, err := net.Listen("tcp4", fmt.Sprintf("127.%d.255.254:%d", slot, slotPort))
		if err != nil {
			continue
		}
		return &Loopback{
			ServiceRange: fmt.Sprintf("127.%d.0.0/17", slot),
			lock:         lock,
			next:         netip.AddrFrom4([4]byte{127, byte(slot), 128, 1}),
		}, nil
	}
	return nil, errors.New("no loopback addresses are left: too many control planes run at once")
}

// PodIP gives an address that no pod of this plane had before.
func (l *Loopback) PodIP() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	address := l.next
	l.next = l.next.Next()
	return address.String()
}

func (l *Loopback) release() { _ = l.lock.Close() }
