// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"volferry.io/controller/api/v1alpha1"
)

const (
	// tokenKey is the Secret's key that holds the token.
	tokenKey = "token"
	// minToken is the least length of a token, in bytes.
	minToken = 16
)

// authenticate answers with the Source, as the API server has it now, if the caller has shown its token; else with
// notFound, or an error of the API server.
func (h *Handler) authenticate(ctx context.Context, key types.NamespacedName, header string) (*v1alpha1.Source, error) {
	select {
	case h.reads <- struct{}{}:
		defer func() { <-h.reads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	shown, hasToken := bearer(header)
	expected, err := h.token(ctx, key)
	if err != nil {
		return nil, err
	}
	// The comparison is made in any case: without a token to expect, with one that nobody can show.
	if !equal(shown, expected) || !hasToken || expected == nil {
		return nil, notFound
	}
	source := &v1alpha1.Source{}
	if err := h.APIReader.Get(ctx, key, source); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, notFound
		}
		return nil, fmt.Errorf("get the Source: %w", err)
	}
	return source, nil
}

// token is what a caller must show for the Source; nil where nothing opens it.
func (h *Handler) token(ctx context.Context, key types.NamespacedName) ([]byte, error) {
	source := &v1alpha1.Source{}
	if !validName(key) {
		return nil, nil
	}
	if err := h.Client.Get(ctx, key, source); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get the Source: %w", err)
	}
	if source.Spec.Trigger.Webhook == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	secretKey := types.NamespacedName{Namespace: key.Namespace, Name: source.Spec.Trigger.Webhook.TokenSecret}
	err := h.APIReader.Get(ctx, secretKey, secret)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		h.Log.Info("the webhook's token cannot be read", "namespace", key.Namespace, "source", key.Name, "secret", secretKey.Name)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the token's Secret: %w", err)
	}
	// A Secret made from a file often ends in a line end.
	token := bytes.TrimRight(secret.Data[tokenKey], "\r\n")
	if len(token) < minToken {
		h.Log.Info("the webhook's token is missing or shorter than 16 bytes", "namespace", key.Namespace, "source", key.Name, "secret", secretKey.Name)
		return nil, nil
	}
	return token, nil
}

func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

// equal compares in a time that depends on the length of what was shown only.
func equal(shown string, expected []byte) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256(expected)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
