// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volferry.io/controller/internal/app"
	"volferry.io/controller/internal/params"
)

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/controller.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is the text between a heading and the next.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(guide(t), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("no section %s", heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// words in code spans of the first column of the section's tables.
func firstColumn(text string) []string {
	var found []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(text, -1) {
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			found = append(found, word[1])
		}
	}
	return found
}

func TestGuideListsEveryParameter(t *testing.T) {
	documented := firstColumn(section(t, "Parameters"))
	existing := slices.Concat(params.SourceKeys(), params.DestinationKeys())
	for _, key := range existing {
		if !slices.Contains(documented, key) {
			t.Errorf("parameter %s is not documented", key)
		}
	}
	for _, key := range documented {
		if !slices.Contains(existing, key) {
			t.Errorf("parameter %s does not exist", key)
		}
	}
}

func TestGuideListsEveryMetric(t *testing.T) {
	known, documented := registered(), map[string]bool{}
	for _, name := range regexp.MustCompile(`volferry_[a-z_]+`).FindAllString(section(t, "Metrics and alerts"), -1) {
		documented[name] = true
		if !known[name] {
			t.Errorf("metric %s does not exist", name)
		}
	}
	for name := range known {
		if !documented[name] {
			t.Errorf("metric %s is not documented", name)
		}
	}
}

func TestGuideListsEveryOption(t *testing.T) {
	var help bytes.Buffer
	if _, err := app.ParseFlags([]string{"--help"}, io.Writer(&help)); err == nil {
		t.Fatal("--help is not answered")
	}
	documented := firstColumn(section(t, "Install"))
	options := regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help.String(), -1)
	if len(options) < 10 {
		t.Fatalf("help: %s", help.String())
	}
	for _, option := range options {
		if !slices.Contains(documented, "--"+option[1]) {
			t.Errorf("option --%s is not documented", option[1])
		}
	}
	if len(documented) != len(options) {
		t.Errorf("%d options are documented, %d exist", len(documented), len(options))
	}
}

// Events and reasons that the code can produce are the ones that the guide names.
func TestGuideListsEveryEventAndReason(t *testing.T) {
	events, conditions := section(t, "Events"), section(t, "Conditions")
	for pattern, text := range map[string]string{
		`note\([^"]*(?:EventTypeNormal|EventTypeWarning), "([A-Za-z]+)"`: events,
		`Reason[A-Za-z]+ += "([A-Za-z]+)"`:                               conditions,
	} {
		folder := "../../internal/controller"
		if text == conditions {
			folder = "../../api/v1alpha1"
		}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			if strings.HasSuffix(file.Name(), "_test.go") || !strings.HasSuffix(file.Name(), ".go") {
				continue
			}
			source, err := os.ReadFile(folder + "/" + file.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
				found++
				if !strings.Contains(text, "`"+m[1]+"`") {
					t.Errorf("%s: %s is not in the guide", file.Name(), m[1])
				}
			}
		}
		if found < 5 {
			t.Errorf("only %d found by %s", found, pattern)
		}
	}
}

// The tests that a document points to exist.
func TestDocumentsNameExistingTests(t *testing.T) {
	existing := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			existing[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/volsync-complaints.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !existing[m[1]] {
			t.Errorf("%s does not exist", m[1])
		}
	}
}
