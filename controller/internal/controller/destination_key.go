// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/build"
)

// keyBytes of a key that is made here.
const keyBytes = 32

var (
	keyIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:/@-]{1,128}$`)
	keyPattern   = regexp.MustCompile(`^([0-9A-Fa-f]{2}){16,64}$`)
)

// ensureKey puts the key where the receive mover can mount it. The user's own is copied out of his namespace; without one
// a key is made once, and handed out by whoever may read the vault.
func (r *destinationRun) ensureKey(ctx context.Context) error {
	if r.params.KeySecret == "" {
		return r.ensureOwnKey(ctx)
	}
	id, psk, lack, err := r.userKey(ctx, r.destination.Namespace, r.params.KeySecret)
	if err != nil {
		return err
	}
	if lack != nil {
		return r.missing(lack.reason, lack.message)
	}
	existing := &corev1.Secret{}
	err = r.APIReader.Get(ctx, r.key(r.childSet), existing)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || existing.Labels[v1alpha1.LabelOwnerUID] != string(r.destination.UID) || string(existing.Data["id"]) != id || string(existing.Data["psk"]) != psk {
		if err := apply(ctx, r.Client, build.KeySecret(r.child(r.childSet), []byte(id), []byte(psk))); err != nil {
			return err
		}
	}
	r.useKey(id, psk)
	return nil
}

// lacking is something that has to appear, in the words of a condition.
type lacking struct{ reason, message string }

// userKey reads the key in a user's Secret.
func (b *base) userKey(ctx context.Context, namespace, name string) (id, psk string, lack *lacking, err error) {
	secret := &corev1.Secret{}
	switch err := b.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		return "", "", &lacking{v1alpha1.ReasonSecretNotFound, fmt.Sprintf("secret %s does not exist", name)}, nil
	case apierrors.IsForbidden(err):
		return "", "", &lacking{v1alpha1.ReasonSecretForbidden, fmt.Sprintf(
			"the controller may not read secret %s; bind ClusterRole volferry-secret-reader to it in this namespace, see docs/controller.md", name)}, nil
	case err != nil:
		return "", "", nil, err
	}
	id, psk = trimmed(secret.Data["id"]), trimmed(secret.Data["psk"])
	if !keyIDPattern.MatchString(id) || !keyPattern.MatchString(psk) {
		return "", "", &lacking{v1alpha1.ReasonSecretNotFound, fmt.Sprintf(
			"secret %s is not usable: it needs `id`, a word, and `psk`, at least 32 hex digits", name)}, nil
	}
	return id, psk, nil, nil
}

// ensureOwnKey makes a key if there is none. It is created and not applied: an existing key is never replaced.
func (r *destinationRun) ensureOwnKey(ctx context.Context) error {
	existing := &corev1.Secret{}
	err := r.APIReader.Get(ctx, r.key(r.childSet), existing)
	if apierrors.IsNotFound(err) {
		random := make([]byte, keyBytes)
		if _, err := rand.Read(random); err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		existing = build.KeySecret(r.child(r.childSet), []byte(r.childSet), []byte(hex.EncodeToString(random)))
		err = r.Client.Create(ctx, existing)
	}
	if err != nil {
		return err
	}
	if _, err := takeOver(ctx, r.Client, r.destination, existing); err != nil {
		return err
	}
	r.useKey(string(existing.Data["id"]), string(existing.Data["psk"]))
	return nil
}

// useKey shows the key's id, and lets the mover be made anew when the key changes. No part of the key itself is shown.
func (r *destinationRun) useKey(id, psk string) {
	r.keyVersion = build.Hash([]string{id, psk})
	r.report("keyID", id)
}

// report sets one key of methodStatus.
func (r *destinationRun) report(name, value string) {
	if r.destination.Status.MethodStatus == nil {
		r.destination.Status.MethodStatus = map[string]string{}
	}
	if value == "" {
		delete(r.destination.Status.MethodStatus, name)
		return
	}
	r.destination.Status.MethodStatus[name] = value
}

func trimmed(value []byte) string { return strings.TrimSpace(string(value)) }
