package mutant_test

import (
	"os"
	"testing"
)

func TestBuilds(t *testing.T) {
	for i := range builds {
		b := builds[i].compile(t)
		if d := os.Getenv("KEEP"); d != "" {
			os.CopyFS(d+"/"+builds[i].name, os.DirFS(b.Dir))
		}
	}
}
