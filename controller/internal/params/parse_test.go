// SPDX-License-Identifier: Apache-2.0

package params

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func source(pairs ...string) map[string]string {
	return with(map[string]string{"keySecret": "key"}, pairs...)
}

func destination(pairs ...string) map[string]string {
	return with(map[string]string{"capacity": "1Gi"}, pairs...)
}

func with(m map[string]string, pairs ...string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func TestDefaults(t *testing.T) {
	s, err := ParseSource(source("address", ""), Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantSource := &SourceParams{
		Common: Common{KeySecret: "key", Port: 8000, CopyMethod: CopySnapshot},
		Delete: true, Verify: "none", Retries: 5, ConnectTimeout: time.Minute,
	}
	if !reflect.DeepEqual(s, wantSource) {
		t.Errorf("source: got %+v, want %+v", s, wantSource)
	}
	if err := s.ReadyToSync(); err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("ready without an address: %v", err)
	}
	d, err := ParseDestination(destination(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Capacity.String() != "1Gi" || d.VolumeMode != corev1.PersistentVolumeFilesystem || d.KeepImages != 1 ||
		d.ServiceType != corev1.ServiceTypeClusterIP || !slices.Equal(d.AccessModes, []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}) {
		t.Errorf("destination: got %+v", d)
	}
}

func TestRequired(t *testing.T) {
	if _, err := ParseSource(map[string]string{}, Options{}); err == nil || !strings.Contains(err.Error(), "keySecret") {
		t.Errorf("source without a key: %v", err)
	}
	if _, err := ParseDestination(nil, Options{}); err == nil || !strings.Contains(err.Error(), "capacity") {
		t.Errorf("destination without a size: %v", err)
	}
	if _, err := ParseDestination(nil, Options{Adopting: true}); err != nil {
		t.Errorf("adopting destination without a size: %v", err)
	}
}

func TestEverySourceParameter(t *testing.T) {
	got, err := ParseSource(source("address", "[fd00::1]", "port", "8443", "copyMethod", "Clone", "storageClassName", "",
		"volumeSnapshotClassName", "snap", "accessModes", "ReadOnlyMany, ReadWriteOnce", "capacity", "2Gi",
		"compression", "zstd:19", "bandwidthLimit", "1.5Mi/s", "blockSize", "auto", "streams", "4", "delete", "false",
		"preserve", "times,owner", "exclude", "*.tmp\n\n/cache/\r\n", "verify", "full", "retries", "0",
		"connectTimeout", "90", "syncTimeout", "2h", "moverServiceAccount", "mover",
		"moverPodLabels", `{"team":"a"}`, "moverResources", `{"limits":{"memory":"256Mi"}}`,
		"moverTolerations", `[{"key":"x","operator":"Exists"}]`, "moverAffinity", `{"podAffinity":{}}`,
		"moverSecurityContext", `{"runAsUser":1234,"fsGroup":5678}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.StorageClassName == nil || *got.StorageClassName != "" {
		t.Errorf("storageClassName: %v, want a pointer to the empty string", got.StorageClassName)
	}
	if got.Address != "fd00::1" || got.Port != 8443 || got.BandwidthLimit != 3<<19 || got.Delete || got.Retries != 0 ||
		got.ConnectTimeout != 90*time.Second || got.SyncTimeout != 2*time.Hour || got.Capacity.Value() != 2<<30 {
		t.Errorf("got %+v", got)
	}
	if !slices.Equal(got.Exclude, []string{"*.tmp", "/cache/"}) || !slices.Equal(got.Preserve, []string{"owner", "times"}) {
		t.Errorf("lists: %q %q", got.Exclude, got.Preserve)
	}
	if *got.MoverSecurityContext.RunAsUser != 1234 || got.MoverPodLabels["team"] != "a" || len(got.MoverTolerations) != 1 ||
		got.MoverAffinity.PodAffinity == nil || got.MoverResources.Limits.Memory().Value() != 256<<20 {
		t.Errorf("mover: %+v", got.Common)
	}
}

func TestUnknown(t *testing.T) {
	tests := map[string]struct {
		kind, key string
		want      string
	}{
		"typo":           {kindDestination, "capcity", "parameter capcity: a Destination has no such parameter; did you mean capacity?"},
		"case":           {kindSource, "bandwidthlimit", "did you mean bandwidthLimit?"},
		"other kind":     {kindDestination, "address", "belongs to a Source"},
		"other kind too": {kindSource, "keepImages", "belongs to a Destination"},
		"image":          {kindSource, "moverImage", "set for the whole controller"},
		"far":            {kindSource, "colour", "a Source has no such parameter"},
		"odd name":       {kindSource, "a\nb", `"a\nb"`},
		"key as name":    {kindSource, strings.Repeat("0f", 32), redacted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSource(source(tc.key, "x"), Options{})
			if tc.kind == kindDestination {
				_, err = ParseDestination(destination(tc.key, "x"), Options{})
			}
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonUnknownParameter || !strings.Contains(e.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "0f0f0f") {
				t.Errorf("a key is shown: %v", err)
			}
		})
	}
}

func TestUnknownHasNoFarHint(t *testing.T) {
	_, err := ParseSource(source("colour", "x"), Options{})
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidSource(t *testing.T) {
	tests := map[string]struct{ key, value, want string }{
		"rate word":              {"bandwidthLimit", "fast", "rate"},
		"rate negative":          {"bandwidthLimit", "-1", "rate"},
		"rate huge":              {"bandwidthLimit", "999999999999999P", "rate"},
		"port zero":              {"port", "0", "1 to 65535"},
		"port text":              {"port", "https", "1 to 65535"},
		"port big":               {"port", "70000", "1 to 65535"},
		"address with port":      {"address", "dst.example.com:8000", "parameter port"},
		"address brackets":       {"address", "[dst]", "brackets"},
		"address number":         {"address", "10.0.0.300", "IP address"},
		"address space":          {"address", "a b", "host name"},
		"compression":            {"compression", "gzip", "zstd:19"},
		"compression level":      {"compression", "zstd:20", "zstd:19"},
		"block size":             {"blockSize", "64Ki", "engine chooses"},
		"streams":                {"streams", "65", "1 to 64"},
		"delete":                 {"delete", "yes", "true nor false"},
		"preserve":               {"preserve", "owner,mode", "devices"},
		"preserve twice":         {"preserve", "owner,owner", "twice"},
		"verify sample":          {"verify", "sample", "not offered"},
		"verify":                 {"verify", "some", "none, full"},
		"retries":                {"retries", "-1", "0 to 1000"},
		"connect timeout":        {"connectTimeout", "0s", "whole seconds"},
		"sync timeout":           {"syncTimeout", "1500ms", "whole seconds"},
		"copy method":            {"copyMethod", "snapshot", "Snapshot, Clone, Direct"},
		"access modes":           {"accessModes", "RWO", "ReadWriteOnce"},
		"access modes mixed":     {"accessModes", "ReadWriteOncePod,ReadWriteOnce", "no other"},
		"capacity":               {"capacity", "0", "10Gi"},
		"capacity text":          {"capacity", "big", "10Gi"},
		"secret name":            {"keySecret", "Key_1", "object's name"},
		"zero byte":              {"exclude", "a\x00b", "zero byte"},
		"control character":      {"exclude", "a\x1bb", "control"},
		"json":                   {"moverResources", "{", "JSON"},
		"json unknown":           {"moverResources", `{"limit":{}}`, "limit"},
		"json trailing":          {"moverAffinity", `{} {}`, "JSON"},
		"json twice":             {"moverPodLabels", `{"a":"b","a":"c"}`, "JSON"},
		"resources order":        {"moverResources", `{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}`, "above its limit"},
		"resources negative":     {"moverResources", `{"limits":{"cpu":"-1"}}`, "negative"},
		"resources claims":       {"moverResources", `{"claims":[{"name":"x"}]}`, "not offered"},
		"label ours":             {"moverPodLabels", `{"volferry.io/role":"x"}`, "not the user's"},
		"label managed by":       {"moverPodLabels", `{"app.kubernetes.io/name":"x"}`, "not the user's"},
		"label of Jobs":          {"moverPodLabels", `{"job-name":"x"}`, "not the user's"},
		"label value":            {"moverPodLabels", `{"a":"b c"}`, "label's value"},
		"label name":             {"moverPodLabels", `{"a b":"c"}`, "name of a label"},
		"toleration":             {"moverTolerations", `[{"operator":"Maybe"}]`, "Equal nor Exists"},
		"toleration no key":      {"moverTolerations", `[{"value":"x"}]`, "without a key"},
		"toleration exists":      {"moverTolerations", `[{"key":"a","operator":"Exists","value":"x"}]`, "has no value"},
		"uid 0":                  {"moverSecurityContext", `{"runAsUser":0}`, "runAsUser 0"},
		"not non-root":           {"moverSecurityContext", `{"runAsNonRoot":false}`, "runAsNonRoot"},
		"capability":             {"moverSecurityContext", `{"capabilities":{"add":["CHOWN"]}}`, "capabilities"},
		"seccomp":                {"moverSecurityContext", `{"seccompProfile":{"type":"Unconfined"}}`, "seccomp"},
		"apparmor":               {"moverSecurityContext", `{"appArmorProfile":{"type":"Unconfined"}}`, "AppArmor"},
		"selinux":                {"moverSecurityContext", `{"seLinuxOptions":{"type":"spc_t"}}`, "SELinux"},
		"privileged is no field": {"moverSecurityContext", `{"privileged":true}`, "privileged"},
		"sysctls":                {"moverSecurityContext", `{"sysctls":[{"name":"a","value":"b"}]}`, "sysctls"},
		"windows":                {"moverSecurityContext", `{"windowsOptions":{"hostProcess":true}}`, "windows"},
		"negative group":         {"moverSecurityContext", `{"fsGroup":-1}`, "negative"},
		"drop":                   {"moverSecurityContext", `{"capabilities":{"drop":["ALL"]}}`, "drop"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSource(source(tc.key, tc.value), Options{})
			wantInvalid(t, err, tc.key, tc.want)
		})
	}
}

func TestInvalidDestination(t *testing.T) {
	tests := map[string]struct{ key, value, want string }{
		"mode":            {"volumeMode", "block", "Filesystem, Block"},
		"keep none":       {"keepImages", "0", "1 to 16"},
		"keep many":       {"keepImages", "17", "1 to 16"},
		"journal":         {"undoJournal", "true", "no undo journal"},
		"journal word":    {"undoJournal", "on", "true nor false"},
		"service":         {"serviceType", "ExternalName", "ClusterIP"},
		"annotations":     {"serviceAnnotations", `{"volferry.io/owner":"x"}`, "not the user's"},
		"annotation list": {"serviceAnnotations", `["a"]`, "JSON"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDestination(destination(tc.key, tc.value), Options{})
			wantInvalid(t, err, tc.key, tc.want)
		})
	}
}

func wantInvalid(t *testing.T, err error, key, want string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonInvalidParameter || e.Key != key || !strings.Contains(e.Detail, want) {
		t.Errorf("got %v, want parameter %s and %q", err, key, want)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestPrivilegedNamespace(t *testing.T) {
	const root = `{"runAsUser":0,"capabilities":{"add":["CHOWN","FOWNER"]}}`
	got, err := ParseSource(source("moverSecurityContext", root), Options{PrivilegedMovers: true})
	if err != nil {
		t.Fatal(err)
	}
	if *got.MoverSecurityContext.RunAsUser != 0 || !slices.Equal(got.MoverCapabilities, []corev1.Capability{"CHOWN", "FOWNER"}) {
		t.Errorf("got %+v", got.Common)
	}
	for _, much := range []string{"SYS_ADMIN", "ALL", "NET_ADMIN", "SYS_PTRACE"} {
		value := `{"capabilities":{"add":["` + much + `"]}}`
		_, err := ParseSource(source("moverSecurityContext", value), Options{PrivilegedMovers: true})
		wantInvalid(t, err, "moverSecurityContext", much)
	}
}

func TestKeysAreNotShown(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	base64 := "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	pem := "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----"
	for _, secret := range []string{hex, "volferry:" + hex, base64, pem, `{"` + hex + `":1}`} {
		for _, key := range slices.Concat(SourceKeys(), []string{"psk"}) {
			_, err := ParseSource(source(key, secret), Options{})
			if err == nil {
				continue
			}
			for _, part := range []string{hex[:32], base64[:40], "MIIB"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v", key, err)
				}
			}
		}
	}
}

func TestSameErrorEachTime(t *testing.T) {
	bad := source("port", "x", "delete", "x", "zzz", "x")
	_, first := ParseSource(bad, Options{})
	for range 20 {
		if _, err := ParseSource(bad, Options{}); err.Error() != first.Error() {
			t.Fatalf("%v, then %v", first, err)
		}
	}
}

func TestRates(t *testing.T) {
	for value, want := range map[string]int64{"0": 0, "4096": 4096, "50M": 50e6, "50Mi": 50 << 20, "1.5gi": 3 << 29, "10MB/s": 10e6, "7kib/s": 7 << 10} {
		if got, err := parseRate("bandwidthLimit", value); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", value, got, err, want)
		}
	}
}
