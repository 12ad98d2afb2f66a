// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Identity of the controller in a cluster that deploy/rbac was applied to.
const (
	ControllerNamespace      = "volferry-system"
	ControllerServiceAccount = "volferry-controller"
)

// Controller gives credentials that have the rights of the controller's service account and no others.
func (p *Plane) Controller() *rest.Config {
	return p.ServiceAccount(ControllerNamespace, ControllerServiceAccount)
}

// ServiceAccount gives credentials with the rights of a service account, which need not exist yet: the
// administrator impersonates it.
func (p *Plane) ServiceAccount(namespace, name string) *rest.Config {
	return p.User("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// User gives credentials with the rights of the user and groups.
func (p *Plane) User(name string, groups ...string) *rest.Config {
	config := p.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return config
}

// Token gives credentials that hold a token of an existing service account, as a pod would: no certificate,
// nobody impersonated. It is for processes of their own. The token is good for a day.
func (p *Plane) Token(ctx context.Context, namespace, name string) (*rest.Config, error) {
	c, err := p.Client()
	if err != nil {
		return nil, err
	}
	seconds := int64(24 * 60 * 60)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("a token for %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(p.Admin())
	config.BearerToken = request.Status.Token
	return config, nil
}

// KubeConfig writes credentials as the file that kubectl reads.
func KubeConfig(config *rest.Config, path string) error {
	const name = "volferry-test"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.WriteToFile(*file, path)
}
