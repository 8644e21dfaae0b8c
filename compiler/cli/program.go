package cli

import (
	"errors"
	"path/filepath"

	"amkc/compiler"
	"amkc/interchange"
	"amkc/ir"
	"amkc/runtime/infile"
)

// A program is what a program file holds. One of the two is set.
type program struct {
	native  *ir.Program          // well-formed: ir.Check has passed it
	profile *interchange.Program // of the AMK profile
}

// readProgram reads a program file in any form, or that of a build, and reports what it warns of. Every verb that takes
// such a file reads it here, so that none works on a program that nobody has checked.
func (c *call) readProgram(path string) (program, error) {
	if isBuild(path) {
		path = filepath.Join(path, compiler.ProgramFile)
	}
	text, err := readFile(path, infile.Program)
	if err != nil {
		return program{}, err
	}
	return c.loadProgram(text, path)
}

// loadProgram is readProgram for the bytes of a file.
func (c *call) loadProgram(text []byte, path string) (program, error) {
	native, err := ir.Load(text, path)
	if !errors.Is(err, ir.ErrProfile) {
		return program{native: native}, err
	}
	profile, diags := interchange.Parse(text, path)
	if diags.Err() != nil {
		return program{}, diags
	}
	c.report(diags)
	return program{profile: profile}, nil
}
