// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"volferry.io/controller/api/v1alpha1"
	"volferry.io/controller/internal/app"
	"volferry.io/controller/internal/controller"
	"volferry.io/controller/internal/names"
	"volferry.io/controller/test/nodeless"
)

// world is one test's: a namespace, a running controller, and what it was refused.
type world struct {
	*testing.T
	site          *site
	ctx           context.Context
	namespace     string
	client        client.Client
	options       app.Options
	clock         clock.PassiveClock
	forbidden     atomic.Int64
	lastForbidden atomic.Value
	stop          func()
	// idle leaves it to the test to start the controller.
	idle bool
}

// newWorld makes a namespace and starts the controller with the rights of its service account.
func newWorld(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	w := &world{
		T: t, ctx: t.Context(), site: cluster, clock: clock.RealClock{}, stop: func() {},
		namespace: strings.ToLower(strings.NewReplacer("_", "-", "/", "-", "#", "-").Replace(t.Name())) + fmt.Sprintf("-%04x", rand.N(1<<16)),
		options: app.Options{
			Options: controller.Options{
				VaultNamespace: vault, MoverImage: "volferry:test", RetryDelay: 500 * time.Millisecond, RetryDelayMax: 4 * time.Second,
				FenceSettle: 2 * time.Second,
			},
			Workers: 4, MetricsAddress: "0", HealthAddress: "0", WebhookAddress: "0",
		},
	}
	if len(w.namespace) > 63 {
		w.namespace = w.namespace[len(w.namespace)-63:]
		w.namespace = strings.TrimLeft(w.namespace, "-")
	}
	for _, f := range change {
		f(w)
	}
	w.client = w.site.admin
	w.options.Namespaces = []string{w.namespace}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	if !w.idle {
		w.startController()
	}
	t.Cleanup(w.finish)
	return w
}

// startController runs the controller until stop is called.
func (w *world) startController() {
	w.Helper()
	config := w.site.plane.Controller()
	config.QPS, config.Burst = 200, 400
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &forbiddenCounter{next, w} })
	w.stop = w.run(config)
}

func (w *world) run(config *rest.Config) (stop func()) {
	w.Helper()
	mgr, err := app.New(config, w.options, w.clock)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the controller ended with: %v", err)
		}
	}
}

// finish deletes what the test made, while the controller can still clean up, and checks that nothing is left.
func (w *world) finish() {
	w.ctx = context.Background()
	if !w.Failed() {
		w.deleteAll()
	}
	w.stop()
	w.inject(nil)
	if n := w.forbidden.Load(); n > 0 {
		w.Errorf("%d requests of the controller were forbidden, the last one: %v", n, w.lastForbidden.Load())
	}
}

// deleteAll deletes the Sources and Destinations and waits until their children are gone.
func (w *world) deleteAll() {
	w.Helper()
	sources, destinations := &v1alpha1.SourceList{}, &v1alpha1.DestinationList{}
	w.must(w.client.List(w.ctx, sources, client.InNamespace(w.namespace)))
	w.must(w.client.List(w.ctx, destinations, client.InNamespace(w.namespace)))
	var all []client.Object
	for i := range sources.Items {
		all = append(all, &sources.Items[i])
	}
	for i := range destinations.Items {
		all = append(all, &destinations.Items[i])
	}
	for _, object := range all {
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, object)))
	}
	for _, object := range all {
		w.eventually(60*time.Second, fmt.Sprintf("the end of %T %s", object, object.GetName()), func() bool {
			return client.IgnoreNotFound(w.client.Get(w.ctx, client.ObjectKeyFromObject(object), object)) == nil &&
				w.client.Get(w.ctx, client.ObjectKeyFromObject(object), object) != nil
		})
	}
}

// forbiddenCounter counts answers 403.
type forbiddenCounter struct {
	next http.RoundTripper
	w    *world
}

func (f *forbiddenCounter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		f.w.forbidden.Add(1)
		f.w.lastForbidden.Store(request.Method + " " + request.URL.Path)
	}
	return response, err
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		w.must(w.client.Create(w.ctx, object))
	}
}

// lookEvery is a compromise: asking every 50 ms whether something has come about took a quarter of the API server's time, which
// is what these tests wait for most.
const lookEvery = 100 * time.Millisecond

// eventually waits until a condition holds.
func (w *world) eventually(patience time.Duration, what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			w.Fatalf("after %v still waiting for: %s\n%s", patience, what, w.describe())
		}
		time.Sleep(lookEvery)
	}
}

// never checks that a condition does not come to hold.
func (w *world) never(while time.Duration, what string, holds func() bool) {
	w.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(lookEvery) {
		if holds() {
			w.Fatalf("this must not happen: %s\n%s", what, w.describe())
		}
	}
}

// describe says how the resources stand, for a failure's message.
func (w *world) describe() string {
	var text strings.Builder
	sources, destinations := &v1alpha1.SourceList{}, &v1alpha1.DestinationList{}
	_ = w.client.List(context.Background(), sources, client.InNamespace(w.namespace))
	_ = w.client.List(context.Background(), destinations, client.InNamespace(w.namespace))
	for _, s := range sources.Items {
		fmt.Fprintf(&text, "Source %s: phase %s, active %+v, retry %+v, mover %+v\n", s.Name, s.Status.Phase, s.Status.ActiveSync, s.Status.Retry, s.Status.LatestMover)
		text.WriteString(conditionsText(s.Status.Conditions))
	}
	for _, d := range destinations.Items {
		fmt.Fprintf(&text, "Destination %s: phase %s, staging %+v, pending %+v, retry %+v, mover %+v\n", d.Name, d.Status.Phase, d.Status.Staging, d.Status.PendingImage, d.Status.Retry, d.Status.LatestMover)
		text.WriteString(conditionsText(d.Status.Conditions))
	}
	return text.String()
}

func conditionsText(conditions []metav1.Condition) string {
	var text strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// source reads a Source of this world.
func (w *world) source(name string) *v1alpha1.Source {
	w.Helper()
	object := &v1alpha1.Source{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object))
	return object
}

func (w *world) destination(name string) *v1alpha1.Destination {
	w.Helper()
	object := &v1alpha1.Destination{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object))
	return object
}

// objectOf is a pointer to T that is an object of the API server.
type objectOf[T any] interface {
	*T
	client.Object
}

// edit changes an object of the world's namespace as a person with `kubectl edit` does: once more where somebody else wrote in
// between. It gives the object as written.
func edit[T any, P objectOf[T]](w *world, name string, change func(P)) P {
	w.Helper()
	var object P
	w.eventually(10*time.Second, fmt.Sprintf("an edit of %T %s without a conflict", object, name), func() bool {
		object = new(T)
		w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object))
		change(object)
		err := w.client.Update(w.ctx, object)
		if apierrors.IsConflict(err) {
			return false
		}
		w.must(err)
		return true
	})
	return object
}

// foreignFinalizer is not the controller's to remove.
const foreignFinalizer = "example.com/hold"

// pin gives an object a foreign finalizer, so that it stays when it is deleted.
func pin[T any, P objectOf[T]](w *world, name string) P {
	w.Helper()
	return edit(w, name, func(object P) { object.SetFinalizers(append(object.GetFinalizers(), foreignFinalizer)) })
}

// unpin removes it.
func unpin[T any, P objectOf[T]](w *world, name string) {
	w.Helper()
	edit(w, name, func(object P) {
		object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == foreignFinalizer }))
	})
}

// reason of a condition.
func reason(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

// claim makes a bound claim and gives its directory or device.
func (w *world) claim(name, size string, mode corev1.PersistentVolumeMode) string {
	w.Helper()
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode:  ptr.To(mode),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	})
	return w.path(w.namespace, name)
}

// path of a claim's volume, once it is bound.
func (w *world) path(namespace, name string) string {
	w.Helper()
	var path string
	w.eventually(20*time.Second, "the volume of claim "+name, func() bool {
		var err error
		path, err = w.site.node.ClaimPath(w.ctx, namespace, name)
		return err == nil
	})
	return path
}

// staging is the directory or device of a Destination's staging volume.
func (w *world) staging(name string) string {
	w.Helper()
	return w.path(vault, names.Destination(w.namespace, name))
}

// write makes a file with random content.
func (w *world) write(path string, size int) {
	w.Helper()
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, content, 0o644))
	own(path)
}

// own gives a file and its folder to the user that movers run as, as if the application ran as that user. Without root they
// are already.
func own(path string) {
	if os.Geteuid() == 0 {
		_, _ = os.Chown(path, 10001, 10001), os.Chown(filepath.Dir(path), 10001, 10001)
	}
}

// same tells whether two directories or devices hold the same, by a program that is not ours.
func same(a, b string) bool {
	info, err := os.Stat(a)
	if err != nil {
		return false
	}
	if info.IsDir() {
		return exec.Command("diff", "-r", "--exclude=lost+found", a, b).Run() == nil
	}
	return exec.Command("cmp", "-s", a, b).Run() == nil
}

// pair makes a Destination, a Source that pushes to it and the key they share. The Source has no trigger.
func (w *world) pair(name, claim string, sourceParameters, destinationParameters map[string]string) {
	w.Helper()
	w.addDestination(name, destinationParameters)
	w.addSource(name, claim, sourceParameters)
}

// addDestination makes a Destination and waits until it has an address.
func (w *world) addDestination(name string, parameters map[string]string) {
	w.Helper()
	all := map[string]string{"capacity": "64Mi"}
	for k, v := range parameters {
		all[k] = v
	}
	w.create(&v1alpha1.Destination{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.DestinationSpec{Parameters: all},
	})
	w.eventually(30*time.Second, "the address of Destination "+name, func() bool {
		return w.destination(name).Status.MethodStatus["address"] != ""
	})
}

// addSource copies the key of the Destination of the same name out of the vault, as its administrator would, and makes a
// Source.
func (w *world) addSource(name, claim string, parameters map[string]string) {
	w.Helper()
	key := &corev1.Secret{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: vault, Name: names.Destination(w.namespace, name)}, key))
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-key"},
		Data:       map[string][]byte{"id": key.Data["id"], "psk": key.Data["psk"]},
	})
	status := w.destination(name).Status.MethodStatus
	all := map[string]string{"address": status["address"], "port": status["port"], "keySecret": name + "-key"}
	for k, v := range parameters {
		all[k] = v
	}
	w.create(&v1alpha1.Source{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.SourceSpec{Source: claim, Parameters: all},
	})
}

// demand asks for a sync and waits until it is served.
func (w *world) demand(name, value string) {
	w.Helper()
	w.ask(name, value)
	w.served(name, value)
}

func (w *world) ask(name, value string) {
	w.Helper()
	edit(w, name, func(s *v1alpha1.Source) { s.Spec.Trigger.OnDemand = value })
}

func (w *world) served(name, value string) {
	w.Helper()
	w.eventually(90*time.Second, "the sync "+value, func() bool {
		s := w.source(name)
		return s.Status.LastOnDemand == value && s.Status.ActiveSync == nil
	})
}

// sourceRuns are the movers that ran for a Source so far.
func (w *world) sourceRuns(name string) []nodeless.Run {
	return w.runsOf(names.Source(w.namespace, name))
}

func (w *world) destinationRuns(name string) []nodeless.Run {
	return w.runsOf(names.Destination(w.namespace, name))
}

func (w *world) runsOf(child string) []nodeless.Run {
	var found []nodeless.Run
	for _, run := range w.site.node.Runs() {
		if run.Labels[v1alpha1.LabelChild] == child {
			found = append(found, run)
		}
	}
	return found
}
