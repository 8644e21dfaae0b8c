package hostile

import (
	"fmt"
	"strings"
)

// A file is program text under construction.
type file struct{ strings.Builder }

func (f *file) line(format string, args ...any) {
	fmt.Fprintf(f, format+"\n", args...)
}

// fill repeats lines until size bytes are reached.
func (f *file) fill(size int, line func(i int)) {
	for i := 0; f.Len() < size; i++ {
		line(i)
	}
}

// program opens a text program with positions 0 to maxSeq-1, on some SMs if sms is positive.
func program(maxSeq, sms int) *file {
	f := &file{}
	f.line("amk 2.0")
	f.line("model m max_seq=%d", maxSeq)
	if sms > 0 {
		f.line("target t sms=%d smem_optin=200000", sms)
	}
	return f
}

// variant opens the only variant of a program.
func (f *file) variant(maxSeq int) {
	f.line("variant v pos 0..%d", maxSeq-1)
	f.line("counter done counter gpu")
}

// The buffers that every program has.
const (
	source = "buffer in IO_INPUT F32 [4] HBM rowmajor"
	sink   = "buffer out IO_OUTPUT F32 [4] HBM rowmajor"
)

// finish writes the output, so that the program is well-formed up to its end.
func (f *file) finish() []byte {
	f.line("stage last whole extent=1")
	f.line("  out[0:4] = COPY(in[0:4])")
	f.line("  signal done")
	return []byte(f.String())
}

// profile is a program of the AMK profile with the given lists.
func profile(meta, buffers, counters, tasks string) []byte {
	return []byte(`{"ir_version":"0.2.0","abi_version":"0.2","meta":{` + meta + `},"target":null,"buffers":[` +
		buffers +
		`],"counters":[` + counters + `],"tasks":[` + tasks + `],"pages":null,"config":null}`)
}

// list joins items with commas, up to size bytes.
func list(size int, item func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String()
}

// items joins n items with commas.
func items(n int, item func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = item(i)
	}
	return strings.Join(all, ",")
}
