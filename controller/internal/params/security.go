// SPDX-License-Identifier: Apache-2.0

package params

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// moverSecurityContext is a PodSecurityContext with one field more: capabilities belong to a container, and the mover's
// pod has one.
type moverSecurityContext struct {
	corev1.PodSecurityContext `json:",inline"`
	Capabilities              *corev1.Capabilities `json:"capabilities,omitempty"`
}

// grantable are the capabilities that keeping metadata can need; no other is given to a mover. The baseline pod security
// standard permits each of them, so that the vault can be held to it.
var grantable = []corev1.Capability{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SETGID", "SETUID",
}

// Types that the baseline pod security standard permits.
var harmlessSELinuxTypes = []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}

// securityContextSetter checks that a tenant asks for no more than the restricted pod security standard permits, unless
// its namespace permits privileged movers. That matters most in the vault, where the movers of all tenants run.
func securityContextSetter(privileged bool) setter[Common] {
	return func(c *Common, key, value string) *Error {
		var wanted moverSecurityContext
		if err := decode(key, value, &wanted); err != nil {
			return err
		}
		if err := checkAlways(key, &wanted); err != nil {
			return err
		}
		if why := needsPrivilege(&wanted); why != "" && !privileged {
			return invalid(key, "%s: only in a namespace with annotation volferry.io/privileged-movers=true", why)
		}
		c.MoverSecurityContext = &wanted.PodSecurityContext
		if wanted.Capabilities != nil {
			c.MoverCapabilities = wanted.Capabilities.Add
		}
		return nil
	}
}

// checkAlways refuses what no mover gets, wherever it runs.
func checkAlways(key string, wanted *moverSecurityContext) *Error {
	if wanted.WindowsOptions != nil {
		return invalid(key, "windowsOptions are not offered")
	}
	if len(wanted.Sysctls) > 0 {
		return invalid(key, "sysctls are not offered")
	}
	for _, id := range []*int64{wanted.RunAsUser, wanted.RunAsGroup, wanted.FSGroup} {
		if id != nil && *id < 0 {
			return invalid(key, "a user or group id is negative")
		}
	}
	if wanted.Capabilities == nil {
		return nil
	}
	if len(wanted.Capabilities.Drop) > 0 {
		return invalid(key, "capabilities.drop is not needed: a mover has only those it adds")
	}
	for _, capability := range wanted.Capabilities.Add {
		if !slices.Contains(grantable, capability) {
			return invalid(key, "the capability %s is not given to movers", quote(string(capability)))
		}
	}
	return nil
}

// needsPrivilege says what in the context goes beyond the restricted standard; empty if nothing does.
func needsPrivilege(wanted *moverSecurityContext) string {
	switch {
	case wanted.RunAsUser != nil && *wanted.RunAsUser == 0:
		return "runAsUser 0"
	case wanted.RunAsNonRoot != nil && !*wanted.RunAsNonRoot:
		return "runAsNonRoot false"
	case wanted.Capabilities != nil && len(wanted.Capabilities.Add) > 0:
		return "capabilities"
	case wanted.SeccompProfile != nil && wanted.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined:
		return "an unconfined seccomp profile"
	case wanted.AppArmorProfile != nil && wanted.AppArmorProfile.Type == corev1.AppArmorProfileTypeUnconfined:
		return "an unconfined AppArmor profile"
	case wanted.SELinuxOptions != nil && (wanted.SELinuxOptions.User != "" || wanted.SELinuxOptions.Role != "" ||
		!slices.Contains(harmlessSELinuxTypes, wanted.SELinuxOptions.Type)):
		return "SELinux user, role or type"
	}
	return ""
}
