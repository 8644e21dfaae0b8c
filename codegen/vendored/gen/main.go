// Command gen writes codegen/vendored/files/purego.zip, the archive of third-party sources that amkc embeds. It is run
// by `go generate ./codegen/vendored`, in that folder, and imports only the standard library and codegen/vendored.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"amkc/codegen/vendored"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	// Unlike the package, the generator runs inside the module, where the go command knows and fetches the sources.
	cmd := exec.Command("go", "mod", "download", vendored.Module)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", vendored.Module).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	files, err := vendored.FromModule(strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := vendored.Pack(&archive, files); err != nil {
		return err
	}
	// In one step, and from outside the embedded folder: a build that runs at the same time embeds the old archive or
	// the new one, and nothing half-written.
	const unfinished = "purego.zip.tmp"
	if err := os.WriteFile(unfinished, archive.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.FromSlash(vendored.ArchiveName))
}
