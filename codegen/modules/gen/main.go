// Command gen puts the modules that launchers carry into codegen/modules/files/modules, which amkc embeds. `go generate
// ./codegen/modules` runs it, in that folder. It imports only the standard library and codegen/modules.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"amkc/codegen/modules"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, m := range modules.All {
		cmd := exec.Command("go", "mod", "download", m.Path+"@"+m.Version)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", cmd, err)
		}
	}
	files, err := modules.Cached()
	if err != nil {
		return err
	}
	// Written next to the embedded folder and moved there: a build that runs at the same time embeds whole files.
	const unfinished = "unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(unfinished, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(modules.Folder); err != nil {
		return err
	}
	return os.Rename(unfinished, modules.Folder)
}
