package compiler

import (
	"os"
	"path/filepath"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// InputFiles lists the files that a command reads for an argument: those of a model or a build, and otherwise the path
// itself. They need not exist.
func InputFiles(path string) []string {
	dir, _, err := checkpoint.Locate(path)
	if err != nil {
		dir = path
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() && !checkpoint.IsGGUF(dir) {
		return []string{path}
	}
	files := checkpoint.Files(dir)
	if _, err := os.Stat(filepath.Join(path, host.ManifestFile)); err == nil {
		for _, name := range host.Files(path) {
			files = append(files, filepath.Join(path, filepath.FromSlash(name)))
		}
	}
	return files
}

// RefuseInput refuses an output file that is also an input, even through a link: a file of the model or the build, or
// the file, that each path names. Error: AMK5123.
func RefuseInput(out string, paths ...string) error {
	at, err := os.Stat(out)
	if err != nil {
		return nil
	}
	for _, path := range paths {
		for _, file := range InputFiles(path) {
			if info, err := os.Stat(file); err == nil && os.SameFile(at, info) {
				return diag.Errorf(codeOwnInput, out,
					"is read by this command (%s), so it is not written over; want another file", file)
			}
		}
	}
	return nil
}

// notInto refuses the directory of the model as the output: a build has files of the same names.
func notInto(out, model string) error {
	a, err := os.Stat(out)
	if err != nil {
		return nil
	}
	if b, err := os.Stat(model); err == nil && os.SameFile(a, b) {
		return diag.Errorf(codeOwnInput, out, "is the directory of the model; want another directory")
	}
	return nil
}

// notOver refuses files of a build that are among the inputs.
func notOver(dir string, names []string, paths ...string) error {
	for _, name := range names {
		if err := RefuseInput(filepath.Join(dir, filepath.FromSlash(name)), paths...); err != nil {
			return err
		}
	}
	return nil
}
