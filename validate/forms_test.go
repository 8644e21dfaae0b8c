package validate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// The kernel has each buffer in one form: declared in any other, it is refused, also where the reference VM would run
// the program.
func TestEveryBufferHasOneForm(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	elsewhere := 0
	for k := range goldenProgram(t).Buffers {
		for dtype := ir.F32; dtype.Bits() > 0; dtype++ {
			for layout := ir.RowMajor; layout <= ir.Word64; layout++ {
				p := goldenProgram(t)
				b := &p.Buffers[k]
				if b.DType == dtype && (b.Layout.Kind == layout || b.Kind == ir.KVCache && layout == ir.KVBlock16) {
					continue // of caches the kernel has two forms
				}
				b.DType, b.Layout.Kind = dtype, layout
				if len(b.Pages) > 0 {
					page := *pageOf(p, b.Pages[0])
					page.Name, page.Layout.Kind, page.Bytes = "own", layout, b.Bytes()
					p.Pages, b.Pages = append(p.Pages, page), []string{"own"}
				}
				if ir.Check(p).Err() != nil {
					continue
				}
				rep := validate.ProgramFor(kernel.Backend, p)
				require.False(t, rep.OK, "%s is %s %s", b.Name, dtype, layout)
				if code := rep.Diags.Errors()[0].Code; code == validate.CodeBackend.ID ||
					code == kernel.CodeModel.ID {
					if validate.Program(p).OK {
						elsewhere++
					}
				}
			}
		}
	}
	require.Greater(t, elsewhere, 50, "the reference VM runs most of them")
}

func pageOf(p *ir.Program, name string) *ir.Page {
	return &p.Pages[slices.IndexFunc(p.Pages, func(pg ir.Page) bool { return pg.Name == name })]
}
