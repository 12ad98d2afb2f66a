// SPDX-License-Identifier: Apache-2.0

// Package webhook is the HTTPS trigger: whoever knows the token of a Source can ask for a sync of it.
//
//	POST /v1/namespaces/{namespace}/sources/{name}/sync
//	Authorization: Bearer TOKEN
//	Idempotency-Key: KEY            (optional: the same key is the same request)
//
// The answer is 202 {"request": UUID} once the request is an annotation of the Source; from then on it survives any restart.
// So every replica can serve, and the leader does the rest. Until the token was right, nothing is told: an unknown Source,
// one without a webhook and a wrong token all get the same 404, after the same time.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
)

const (
	// maxBody: the body means nothing, but senders of events like to send one.
	maxBody = 64 << 10
	// maxKey is the longest Idempotency-Key, in bytes.
	maxKey = 255
	// refusalTime is how long a 404 takes at least, so that its cause does not show in its time.
	refusalTime = 100 * time.Millisecond
	// maxReads is how many requests may read from the API server at once.
	maxReads = 32
)

// Options are what a Handler needs.
type Options struct {
	// Client reads Sources from the cache, for the first look, and patches them.
	Client client.Client
	// APIReader reads Secrets, and the Source before it is patched, past the cache.
	APIReader client.Reader
	// Count is told the status code of each answer; it may be nil.
	Count func(code int)
	Log   logr.Logger
	// Serves tells whether the Sources of a namespace are served here; nil: all are.
	Serves func(namespace string) bool
	// Clock is the real one where nil.
	Clock clock.Clock
}

// Handler serves the trigger.
type Handler struct {
	Options
	mux     *http.ServeMux
	callers *callers
	reads   chan struct{}
}

// NewHandler makes a Handler.
func NewHandler(options Options) *Handler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Count == nil {
		options.Count = func(int) {}
	}
	h := &Handler{Options: options, mux: http.NewServeMux(), callers: newCallers(options.Clock), reads: make(chan struct{}, maxReads)}
	h.mux.HandleFunc("/v1/namespaces/{namespace}/sources/{name}/sync", h.serveSync)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { h.answer(w, refuse(http.StatusNotFound, "not found")) })
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

// refusal is an answer other than 202.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, text string) *refusal { return &refusal{code, text} }

// notFound is the one answer to whoever has not shown the right token.
var notFound = refuse(http.StatusNotFound, "not found")

func (h *Handler) serveSync(w http.ResponseWriter, r *http.Request) {
	start := h.Clock.Now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.answer(w, refuse(http.StatusMethodNotAllowed, "only POST is served here"))
		return
	}
	id, err := h.sync(w, r)
	if err == nil {
		h.accept(w, id)
		return
	}
	var answer *refusal
	if !errors.As(err, &answer) {
		h.Log.Error(err, "cannot serve a request", "namespace", r.PathValue("namespace"), "source", r.PathValue("name"))
		answer = refuse(http.StatusServiceUnavailable, "try again later")
	}
	if answer == notFound {
		h.waitUntil(r.Context(), start.Add(refusalTime))
	}
	h.answer(w, answer)
}

// sync serves one request: the id of the accepted request, or a refusal, or an error of the API server.
func (h *Handler) sync(w http.ResponseWriter, r *http.Request) (string, error) {
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return "", refuse(http.StatusRequestEntityTooLarge, "the body is too large or was cut")
	}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if h.Serves != nil && !h.Serves(key.Namespace) {
		return "", notFound
	}
	source, err := h.authenticate(r.Context(), key, r.Header.Get("Authorization"))
	if err != nil {
		return "", err
	}
	idempotencyKey := r.Header.Get("Idempotency-Key")
	if !validKey(idempotencyKey) {
		return "", refuse(http.StatusBadRequest, "the Idempotency-Key is longer than 255 characters or not printable ASCII")
	}
	id := uuid.NewString()
	if idempotencyKey != "" {
		id = requestID(source, idempotencyKey)
		if known(source, id) || h.callers.accepted(source.UID, id) {
			return id, nil
		}
	}
	if why := closed(source); why != "" {
		return "", refuse(http.StatusConflict, why)
	}
	if !h.callers.allow(source.UID) {
		return "", refuse(http.StatusTooManyRequests, "more than one request a second")
	}
	if err := h.record(r.Context(), source, id); err != nil {
		return "", err
	}
	if idempotencyKey != "" {
		h.callers.remember(source.UID, id)
	}
	h.Log.Info("sync requested", "namespace", key.Namespace, "source", key.Name, "request", id)
	return id, nil
}

// record makes the request part of the Source. The uid keeps it from reaching a Source made anew meanwhile.
func (h *Handler) record(ctx context.Context, source *v1alpha1.Source, id string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": source.UID, "annotations": map[string]string{v1alpha1.AnnotationSyncRequest: id},
	}})
	if err != nil {
		return err
	}
	target := &v1alpha1.Source{}
	target.Namespace, target.Name = source.Namespace, source.Name
	err = h.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return refuse(http.StatusConflict, "the Source was deleted or made anew")
	}
	return err
}

func (h *Handler) accept(w http.ResponseWriter, id string) {
	h.write(w, http.StatusAccepted, map[string]string{"request": id})
}

func (h *Handler) answer(w http.ResponseWriter, r *refusal) {
	if r.code == http.StatusTooManyRequests || r.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, r.code, map[string]string{"error": r.text})
}

func (h *Handler) write(w http.ResponseWriter, code int, body map[string]string) {
	h.Count(code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The caller may be gone by now, which is its own affair.
	_ = json.NewEncoder(w).Encode(body)
}

func (h *Handler) waitUntil(ctx context.Context, moment time.Time) {
	select {
	case <-h.Clock.After(moment.Sub(h.Clock.Now())):
	case <-ctx.Done():
	}
}

func validName(key types.NamespacedName) bool {
	return len(validation.IsDNS1123Label(key.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(key.Name)) == 0
}
