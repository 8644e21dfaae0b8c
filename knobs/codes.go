package knobs

import "amkc/ir/diag"

var (
	codeKnob = diag.New("AMK2001", "a knob that is unknown or has no effect", `
Knobs are integers under tiling, in groups, and fields next to it. amkc explain knobs lists them, amkc explain ring.pace
describes one, and docs/knobs.md has the table.

A knob that would have no effect is refused, because a search would waste its time on it.`)

	codeRange = diag.New("AMK2002", "a knob is out of range", `
The message gives the accepted values. Ranges are those that the kernel is written for.`)

	codeShared = diag.New("AMK2007", "smem_bytes_per_block does not fit", `
Shared memory per block must hold the ring, at least the chunks in flight and one more, and cannot exceed what the
target offers. 0 means all that the target has.`)

	codePages = diag.New("AMK2008", "an unknown page_allocation", `
page_allocation is graph_color (default: any two exchange buffers whose uses are ordered may share a page), linear (the
buffers of one family share, families do not) or none (a page for each buffer).`)

	codeTwice = diag.New("AMK2009", "pipelining_depth and tiling.ring.in_flight disagree", `
Both say how many weight chunks an SM has in flight. Give one of them, or the same number.`)
)
