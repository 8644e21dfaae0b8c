package mutant_test

// The fault that was in programs and not in device code: a word is overwritten that nobody has read. Two stores of one
// word become visible in either order unless a reader has seen the first, and a later reader of the word then waits for
// ever. passes/copies.go gives an exchange copies only where every word is polled in each; without that, words of qkv
// have copies that nobody reads. The program is emitted all the same, and refused by the proof. That the explorer does
// not find its stall is said in docs/explore.md.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

func TestOverwrittenWordsThatNobodyHasRead(t *testing.T) {
	// attention of a head, and what makes its words, are on other SMs in the next layer
	of := small{name: "copies of qkv", arch: 90, sms: 4, policy: "round_robin"}
	build := of.compile(t)
	of.program = func(p *ir.Program) {
		for i := range p.Buffers {
			b := &p.Buffers[i]
			if !strings.HasSuffix(b.Name, ".qkv") {
				continue
			}
			b.Layout.Copies = 2
			for k := range p.Pages {
				if page := &p.Pages[k]; slices.Contains(b.Pages, page.Name) {
					page.Layout.Copies = 2
				}
			}
		}
	}
	proof := of.emit(t, build.Dir)
	require.Contains(t, fmt.Sprint(proof.Diags), validate.CodeUnread.ID)
}
