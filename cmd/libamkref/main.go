// Command libamkref is a shared library, if it is built with -buildmode=c-shared: the functions of amk.h on the
// reference VM, for tests and for machines without a GPU. A build opens as with libamk.so, and a model of the hub's
// does too.
package main

import (
	"context"
	"os"
	"path/filepath"

	"amkc/app/library"
	"amkc/app/library/capi"
	"amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
	"amkc/runtime/host"
)

func main() {}

func init() { capi.Open = open }

// open opens a build, or a model as it is compiled for an H200. What goes wrong is the input's fault: there is no
// machine to blame.
func open(dir string, gpu int) (*library.Model, error) {
	if gpu != 0 {
		return nil, &library.InputError{What: "the reference VM has no GPUs; want number 0"}
	}
	d, parts, err := parts(dir)
	if err != nil {
		return nil, &library.InputError{What: err.Error()}
	}
	parts.Decoder = d
	return library.New(dir, parts)
}

func parts(dir string) (*decoder, library.Parts, error) {
	var program *ir.Program
	var weights refvm.Weights
	d := &decoder{}
	if _, err := os.Lstat(filepath.Join(dir, host.ManifestFile)); err == nil {
		b, err := compiler.OpenBuild(dir)
		if err != nil {
			return nil, library.Parts{}, err
		}
		program, weights, d.release = b.Program, b, b.Close
	} else {
		name := filepath.Base(filepath.Clean(dir))
		l, err := compiler.RunPasses(compiler.Options{Model: dir, Name: name, Target: ir.FindTarget("h200")})
		if err != nil {
			return nil, library.Parts{}, err
		}
		program, weights, d.release = l.Program, l.Weights, l.Close
	}
	var err error
	if d.session, err = refvm.NewSession(program, weights, refvm.Options{}); err != nil {
		d.release()
		return nil, library.Parts{}, err
	}
	m := &program.Model
	d.given = m.Vocab
	return d, library.Parts{Name: m.Name, Vocab: m.Vocab, MaxSeq: m.MaxSeq, Hidden: m.Hidden}, nil
}

// A decoder is a session of the reference VM.
type decoder struct {
	session *refvm.Session
	given   int // the id of what is given: the one after the vocabulary
	release func() error
	tell    host.Progress // nil: nobody is told
}

// part is how many tokens are decoded between two reports.
const part = 32

// SetProgress is [host.Session.SetProgress].
func (d *decoder) SetProgress(p host.Progress) { d.tell = p }

func (d *decoder) Position() int { return d.session.Pos() }

func (d *decoder) Rewind(position int) error { return d.session.Rewind(position) }

func (d *decoder) Close() error { return d.release() }

func (d *decoder) Decode(ctx context.Context, in host.Input, want host.Outputs) (next int, err error) {
	rows, tell := in.Embeddings, d.tell
	if len(in.IDs) <= part || tell == nil {
		tell = func(string, int64, int64) {}
	}
	defer func() {
		if err == nil {
			tell("reading tokens", int64(len(in.IDs)), int64(len(in.IDs)))
		}
	}()
	for i, id := range in.IDs {
		if i%part == 0 {
			tell("reading tokens", int64(i), int64(len(in.IDs)))
			if err := context.Cause(ctx); err != nil {
				return 0, err
			}
		}
		if id == host.Embedding {
			n := len(d.session.Hidden())
			if err := d.session.SetEmbedding(0, rows[:n]); err != nil {
				return 0, err
			}
			id, rows = d.given, rows[n:]
		}
		at := d.session.Pos()
		logits, chosen, err := d.session.Step(id)
		if err == nil && want.Logits != nil {
			err = want.Logits(at, logits)
		}
		if err == nil && want.Hidden != nil {
			err = want.Hidden(at, d.session.Hidden())
		}
		if err != nil {
			return 0, err
		}
		next = chosen
	}
	return next, nil
}
