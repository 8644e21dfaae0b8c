package cli

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"amkc/app/front"
)

// logitsFlags are the flags of logits.
type logitsFlags struct {
	model modelFlags
	place place
	ids   []int
	out   string
}

func logitsVerb() verb {
	l := &logitsFlags{}
	return verb{
		name: "logits", synopsis: "MODEL|DIR --ids 1,2,3 -o out.npy [--device ref|cuda]", min: 1, max: 1,
		summary: "write the logits after each of a list of token ids",
		details: `
The ids are decoded as given (teacher forcing). The file is a NumPy array of float32 [positions, vocab]. On a GPU, a
model is first built into a cache, and found there the next time.`,
		flags: l.define,
		run:   l.run,
	}
}

func (l *logitsFlags) define(f *pflag.FlagSet) {
	f.Var(newIDs(&l.ids), "ids", "token `IDS`, 1,2,3")
	f.VarP(front.NewWord(&l.out, ""), "out", "o", "write the array to `FILE`; - is standard output")
	l.place.define(f)
	l.model.define(f, defaultTarget)
}

func (l *logitsFlags) run(c *call) error {
	switch {
	case !c.flags.Changed("ids"):
		return c.usage("--ids is missing; want token ids, 1,2,3")
	case l.out == "":
		return c.usage("-o is missing; want a file for the array")
	case l.out == "-" && c.json:
		return c.usage("-o - and --json both want standard output; want a file for the array")
	}
	if err := c.mayWrite(l.out, l.model.inputs(c.args[0])...); err != nil {
		return err
	}
	if err := l.model.forModels(c, c.args[0]); err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	o, err := open(ctx, c, l.place, c.args[0], &l.model)
	if err != nil {
		return err
	}
	defer o.Close()
	if err := checkIDs("--ids", l.ids, 0, o.vocab, o.maxSeq); err != nil {
		return err
	}
	c.payload = struct {
		Device string `json:"device"`
		Build  string `json:"build,omitempty"` // in the cache
		Shape  [2]int `json:"shape"`
		File   string `json:"file"`
	}{o.device, o.build, [2]int{len(l.ids), o.vocab}, l.out}
	write := func(w io.Writer) error { return l.write(ctx, o, w) }
	if l.out == "-" {
		return write(c.stdout)
	}
	return c.replaceFile(l.out, write)
}

// write decodes the ids and writes each row of logits as soon as it is there.
func (l *logitsFlags) write(ctx context.Context, o *opened, w io.Writer) error {
	rows, err := newNPY(w, len(l.ids), o.vocab)
	if err != nil {
		return err
	}
	if _, err := o.Feed(ctx, l.ids, func(_ int, logits []float32) error { return rows.append(logits) }); err != nil {
		return err
	}
	return rows.close()
}
