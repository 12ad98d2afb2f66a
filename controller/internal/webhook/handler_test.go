// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"volferry.io/controller/api/v1alpha1"
)

const (
	goodToken = "0123456789abcdef-right"
	path      = "/v1/namespaces/ns/sources/db/sync"
)

// jumpingClock advances itself where somebody waits, so that no test sleeps.
type jumpingClock struct {
	clock.Clock
	now    time.Time
	waited time.Duration
}

func (c *jumpingClock) Now() time.Time { return c.now }

func (c *jumpingClock) After(d time.Duration) <-chan time.Time {
	c.waited += d
	c.now = c.now.Add(max(d, 0))
	done := make(chan time.Time, 1)
	done <- c.now
	return done
}

// fixture is a Source with a webhook, its token, and a Handler over them.
type fixture struct {
	*testing.T
	client  client.Client
	handler *Handler
	clock   *jumpingClock
	log     bytes.Buffer
	counted []int
	// failing are the kinds whose reads fail, with the error.
	failing map[string]error
	patches int
}

func newSource(change func(*v1alpha1.Source)) *v1alpha1.Source {
	s := &v1alpha1.Source{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "uid-1"}}
	s.Spec.Source, s.Spec.ReplicationMethod = "claim", "Rsync"
	s.Spec.Trigger.Webhook = &v1alpha1.WebhookTrigger{TokenSecret: "hook"}
	if change != nil {
		change(s)
	}
	return s
}

func tokenSecret(token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hook"}, Data: map[string][]byte{"token": []byte(token)}}
}

func setUp(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{T: t, clock: &jumpingClock{now: time.Unix(1_800_000_000, 0)}, failing: map[string]error{}}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Source{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := f.failing[strings.TrimPrefix(fmt.Sprintf("%T", o), "*")]; err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				f.patches++
				return c.Patch(ctx, o, p, opts...)
			},
		}).Build()
	f.handler = NewHandler(Options{
		Client: f.client, APIReader: f.client, Clock: f.clock,
		Count: func(code int) { f.counted = append(f.counted, code) },
		Log:   funcr.New(func(prefix, args string) { fmt.Fprintln(&f.log, prefix, args) }, funcr.Options{Verbosity: 9}),
	})
	return f
}

// post sends a request; header is NAME, VALUE, ..
func (f *fixture) post(path, token string, header ...string) *httptest.ResponseRecorder {
	return f.request(http.MethodPost, path, token, "", header...)
}

func (f *fixture) request(method, path, token, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// accepted checks that the answer is 202 and gives the request's id.
func (f *fixture) accepted(w *httptest.ResponseRecorder) string {
	f.Helper()
	var body struct{ Request string }
	if w.Code != http.StatusAccepted || json.Unmarshal(w.Body.Bytes(), &body) != nil || len(body.Request) != 36 {
		f.Fatalf("got %d %s", w.Code, w.Body)
	}
	return body.Request
}

func (f *fixture) annotation() string {
	f.Helper()
	source := &v1alpha1.Source{}
	if err := f.client.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "db"}, source); err != nil {
		f.Fatal(err)
	}
	return source.Annotations[v1alpha1.AnnotationSyncRequest]
}

func TestA06RequestIsRecordedBeforeTheAnswer(t *testing.T) {
	f := setUp(t, newSource(func(s *v1alpha1.Source) { s.Annotations = map[string]string{"user": "keeps"} }), tokenSecret(goodToken+"\n"))
	w := f.post(path, goodToken)
	id := f.accepted(w)
	if f.annotation() != id {
		t.Errorf("annotation %q, answer %q", f.annotation(), id)
	}
	if w.Header().Get("Content-Type") != "application/json" || len(f.counted) != 1 || f.counted[0] != 202 {
		t.Errorf("header %v, counted %v", w.Header(), f.counted)
	}
	source := &v1alpha1.Source{}
	if err := f.client.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "db"}, source); err != nil || source.Annotations["user"] != "keeps" {
		t.Errorf("annotations %v, %v", source.Annotations, err)
	}
}

func TestA06OneAnswerToAllWithoutTheToken(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "hook", errors.New("no"))
	tests := map[string]struct {
		path, token string
		source      *v1alpha1.Source
		secret      *corev1.Secret
		secretError error
	}{
		"wrong token":    {path, "0123456789abcdef-wrong", newSource(nil), tokenSecret(goodToken), nil},
		"prefix":         {path, goodToken[:20], newSource(nil), tokenSecret(goodToken), nil},
		"no token":       {path, "", newSource(nil), tokenSecret(goodToken), nil},
		"unknown":        {"/v1/namespaces/ns/sources/other/sync", goodToken, newSource(nil), tokenSecret(goodToken), nil},
		"no webhook":     {path, goodToken, newSource(func(s *v1alpha1.Source) { s.Spec.Trigger.Webhook = nil }), tokenSecret(goodToken), nil},
		"no secret":      {path, goodToken, newSource(nil), tokenSecret(goodToken), apierrors.NewNotFound(schema.GroupResource{}, "hook")},
		"forbidden":      {path, goodToken, newSource(nil), tokenSecret(goodToken), forbidden},
		"short token":    {path, "short", newSource(nil), tokenSecret("short"), nil},
		"empty token":    {path, "", newSource(nil), tokenSecret(""), nil},
		"bad name":       {"/v1/namespaces/ns/sources/A_B/sync", goodToken, newSource(nil), tokenSecret(goodToken), nil},
		"escaped path":   {"/v1/namespaces/ns/sources/..%2Fdb/sync", goodToken, newSource(nil), tokenSecret(goodToken), nil},
		"external, none": {path, "0123456789abcdef-wrong", newSource(func(s *v1alpha1.Source) { s.Spec.ReplicationMethod = "x.io/y" }), tokenSecret(goodToken), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := setUp(t, tc.source, tc.secret)
			if tc.secretError != nil {
				f.failing["v1.Secret"] = tc.secretError
			}
			w := f.post(tc.path, tc.token)
			if w.Code != http.StatusNotFound || strings.TrimSpace(w.Body.String()) != `{"error":"not found"}` || len(w.Header()) != 2 {
				t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
			}
			if f.patches != 0 {
				t.Error("something was written")
			}
			if f.clock.waited != refusalTime {
				t.Errorf("answered after %s", f.clock.waited)
			}
			if strings.Contains(f.log.String(), "0123456789abcdef") {
				t.Errorf("a token is in the log: %s", f.log.String())
			}
		})
	}
}

func TestStateOfTheSource(t *testing.T) {
	condition := func(kind, reason string) func(*v1alpha1.Source) {
		return func(s *v1alpha1.Source) {
			s.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	tests := map[string]struct {
		change func(*v1alpha1.Source)
		code   int
		want   string
	}{
		"paused":        {func(s *v1alpha1.Source) { s.Spec.Paused = true }, 202, ""},
		"waiting":       {condition("Synchronizing", "WaitingForTrigger"), 202, ""},
		"external":      {func(s *v1alpha1.Source) { s.Spec.ReplicationMethod = "ceph.io/rbd-async" }, 409, "external method"},
		"fenced":        {condition("Synchronizing", "Fenced"), 409, "fenced"},
		"final sync":    {func(s *v1alpha1.Source) { s.Spec.FinalSync = &v1alpha1.FinalSyncSpec{ID: "m"} }, 409, "final sync"},
		"restoring":     {condition("Synchronizing", "Restoring"), 409, "restored"},
		"gated":         {condition("Restored", "AwaitingTell"), 409, "restored"},
		"not yet gated": {func(s *v1alpha1.Source) { s.Annotations = map[string]string{v1alpha1.AnnotationIncarnation: "old"} }, 409, "restored"},
		"same life":     {func(s *v1alpha1.Source) { s.Annotations = map[string]string{v1alpha1.AnnotationIncarnation: "uid-1"} }, 202, ""},
		"being deleted": {func(s *v1alpha1.Source) {
			now := metav1.Now()
			s.DeletionTimestamp, s.Finalizers = &now, []string{"a/b"}
		}, 409, "deleted"},
		"lower case": {func(s *v1alpha1.Source) { s.Spec.ReplicationMethod = "rsync" }, 202, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := setUp(t, newSource(tc.change), tokenSecret(goodToken))
			w := f.post(path, goodToken)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if recorded := f.annotation() != ""; recorded != (tc.code == 202) {
				t.Errorf("recorded: %v", recorded)
			}
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	f := setUp(t, newSource(nil), tokenSecret(goodToken))
	first := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-1"))
	if again := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-1")); again != first || f.patches != 1 {
		t.Errorf("repeated: %s then %s, %d patches", first, again, f.patches)
	}
	f.clock.now = f.clock.now.Add(2 * time.Second)
	other := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-2"))
	if other == first || f.annotation() != other {
		t.Errorf("another key: %s", other)
	}
	// The first is named nowhere on the Source by now.
	if again := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-1")); again != first || f.annotation() != other {
		t.Errorf("an older key started a sync: %s", f.annotation())
	}
}

// Another replica, or the same after a restart, has only what the Source tells.
func TestIdempotencyKeyOnAnotherReplica(t *testing.T) {
	id := requestID(newSource(nil), "build-1")
	tests := map[string]func(*v1alpha1.Source){
		"waits":      func(s *v1alpha1.Source) { s.Annotations = map[string]string{v1alpha1.AnnotationSyncRequest: id} },
		"was served": func(s *v1alpha1.Source) { s.Status.LastWebhookRequest = id },
		"is served": func(s *v1alpha1.Source) {
			s.Status.ActiveSync = &v1alpha1.ActiveSync{Requests: []string{"initial", "webhook:" + id}}
		},
		"is retried": func(s *v1alpha1.Source) { s.Status.Retry = &v1alpha1.Retry{Requests: []string{"webhook:" + id}} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f := setUp(t, newSource(change), tokenSecret(goodToken))
			if got := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-1")); got != id || f.patches != 0 {
				t.Errorf("got %s, want %s, %d patches", got, id, f.patches)
			}
			if got := f.accepted(f.post(path, goodToken, "Idempotency-Key", "build-2")); got == id || f.patches != 1 {
				t.Errorf("another key: %s, %d patches", got, f.patches)
			}
		})
	}
	other := newSource(func(s *v1alpha1.Source) { s.UID = "uid-2" })
	if requestID(other, "build-1") == id {
		t.Error("a Source made anew has the request ids of the old one")
	}
}

func TestRateLimit(t *testing.T) {
	f := setUp(t, newSource(nil), tokenSecret(goodToken))
	f.accepted(f.post(path, goodToken))
	w := f.post(path, goodToken)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || f.patches != 1 {
		t.Errorf("got %d %s, %d patches", w.Code, w.Body, f.patches)
	}
	// A stranger is not told of it, and does not use it up.
	f.clock.now = f.clock.now.Add(time.Second)
	for range 3 {
		if w := f.post(path, "0123456789abcdef-wrong"); w.Code != http.StatusNotFound {
			t.Errorf("stranger: %d", w.Code)
		}
	}
	f.accepted(f.post(path, goodToken))
}

func TestMemoryOfCallersIsBounded(t *testing.T) {
	c := &jumpingClock{now: time.Unix(1_800_000_000, 0)}
	many := newCallers(c)
	for n := range maxCallers + 5 {
		if allowed := many.allow(types.UID(fmt.Sprint(n))); allowed != (n < maxCallers) {
			t.Fatalf("number %d: %v", n, allowed)
		}
	}
	c.now = c.now.Add(forgetAfter + time.Second)
	if !many.allow("late") || len(many.byUID) != 1 {
		t.Errorf("%d entries are left", len(many.byUID))
	}
}

func TestOddRequests(t *testing.T) {
	f := setUp(t, newSource(nil), tokenSecret(goodToken))
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead} {
		if w := f.request(method, path, goodToken, ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	tests := map[string]struct {
		w    *httptest.ResponseRecorder
		code int
	}{
		"body":       {f.request(http.MethodPost, path, goodToken, strings.Repeat("x", maxBody+1)), 413},
		"other path": {f.post("/healthz", goodToken), 404},
		"long key":   {f.post(path, goodToken, "Idempotency-Key", strings.Repeat("k", 256)), 400},
		"odd key":    {f.post(path, goodToken, "Idempotency-Key", "a\x01"), 400},
		"basic":      {f.post(path, "", "Authorization", "Basic "+goodToken), 404},
	}
	for name, tc := range tests {
		if tc.w.Code != tc.code || !json.Valid(tc.w.Body.Bytes()) {
			t.Errorf("%s: %d %s", name, tc.w.Code, tc.w.Body)
		}
	}
	if f.patches != 0 {
		t.Error("something was written")
	}
	f.accepted(f.request(http.MethodPost, path, goodToken, strings.Repeat("x", maxBody)))
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	for _, kind := range []string{"v1alpha1.Source", "v1.Secret"} {
		f := setUp(t, newSource(nil), tokenSecret(goodToken))
		f.failing[kind] = errors.New("etcd is away")
		w := f.post(path, goodToken)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "etcd") {
			t.Errorf("%s: %d %s", kind, w.Code, w.Body)
		}
		if !strings.Contains(f.log.String(), "etcd is away") || strings.Contains(f.log.String(), goodToken) {
			t.Errorf("log: %s", f.log.String())
		}
	}
}
