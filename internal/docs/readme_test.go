package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadme keeps the README's configuration the one of the example, which the documentation shows, too.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/quickstart/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```terraform\n"+string(example)+"```\n") {
		t.Error("README.md does not have the content of examples/quickstart/main.tf")
	}
}
