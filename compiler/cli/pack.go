package cli

import (
	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
)

// packFlags are the flags of pack.
type packFlags struct {
	model modelFlags
	out   string
}

func packVerb() verb {
	p := &packFlags{}
	return verb{
		name: "pack", synopsis: "MODEL -o weights.safetensors", min: 1, max: 1,
		summary: "pack the weights of a model alone",
		details: `
The file is the one that a build of the model has. It depends on neither the target nor the schedule, so emitting,
compiling and packing can happen on different machines.`,
		flags: func(f *pflag.FlagSet) {
			f.VarP(front.NewWord(&p.out, ""), "out", "o", "write the packed weights to `FILE`")
			p.model.define(f, defaultTarget)
		},
		run: p.run,
	}
}

func (p *packFlags) run(c *call) error {
	if p.out == "" {
		return c.usage("-o is missing; want a file for the packed weights")
	}
	if p.out == "-" {
		return c.usage("packed weights are not written to standard output; want a file for them, ./- for " +
			"one of that name")
	}
	if err := c.mayWrite(p.out, p.model.inputs(c.args[0])...); err != nil {
		return err
	}
	opts, err := p.model.options(c, c.args[0])
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	l, err := compiler.RunPasses(opts)
	if err != nil {
		return err
	}
	defer l.Close()
	c.report(l.Warnings)
	line := c.progress()
	n, digest, err := compiler.Pack(ctx, l, p.out, line.Show)
	line.Clear()
	if err != nil {
		return err
	}
	c.payload = struct {
		File   string `json:"file"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
	}{p.out, n, digest}
	return c.printf("%s: %d bytes, sha256:%s\n", p.out, n, digest)
}
