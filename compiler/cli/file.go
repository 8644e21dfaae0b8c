package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"amkc/compiler"
	"amkc/compiler/builddir"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// isModel reports whether a model can be at a path: whether it is a directory, or a GGUF file.
func isModel(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || checkpoint.IsGGUF(path)
}

// mayWrite refuses a path that a file cannot be written to, before any work is done for it: one that is not a file, and
// one of the files that the arguments lead to. What a run that was killed has left of the same file is removed, and
// reported. A - is standard output.
func (c *call) mayWrite(path string, inputs ...string) error {
	if path == "-" {
		return nil
	}
	if err := compiler.RefuseInput(path, inputs...); err != nil {
		return err
	}
	found, err := outfile.Clean(path)
	if err != nil {
		return notWritten(path, err)
	}
	if found {
		c.report(diag.List{diag.Warningf(builddir.CodeLeftover, path,
			"an earlier run was interrupted while it wrote this file; what it had written is removed")})
	}
	return nil
}

// replaceFile writes a file that appears complete or not at all. Errors of write that are not the file's come back as
// they are.
func (c *call) replaceFile(path string, write func(io.Writer) error) error {
	err := outfile.Write(path, write)
	var refused *infile.Error
	var system *fs.PathError
	if errors.Is(err, outfile.ErrBusy) || errors.As(err, &refused) || errors.As(err, &system) {
		return notWritten(path, err)
	}
	return err
}

func notWritten(path string, err error) error {
	if errors.Is(err, outfile.ErrBusy) {
		return diag.Errorf(builddir.CodeBusy, path, "%v; wait until it has ended, or name another file",
			infile.Reason(err))
	}
	return diag.Errorf(codeOutput, path, "cannot write: %s", infile.Reason(err))
}
