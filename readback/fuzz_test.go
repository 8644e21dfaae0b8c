package readback_test

import (
	"testing"

	"amkc/internal/watch"
	"amkc/readback"
	"amkc/validate"
)

// Whatever the headers hold, there is a program or a diagnostic, and a program that is read without errors can be
// proved or rejected. The golden builds are the seeds, and texts that end early.
func FuzzReadback(f *testing.F) {
	for _, dir := range builds(f) {
		h := headers(f, dir)
		f.Add(h[0], h[1], h[2], h[3], h[4])
		f.Add(h[0][:len(h[0])/2], h[1], h[2], h[3], h[4])
		f.Add(h[0], []byte("// amkc:literals \nnamespace amk {\nconstexpr Page kX[]{"), h[2], h[3], h[4])
		f.Add(h[0], h[1], []byte{}, h[3], h[4])
		f.Add(h[0], h[1], h[2], h[3][:len(h[3])/2], h[4])
		f.Add(h[0], h[1], h[2], h[3], h[4][:len(h[4])/2])
	}
	f.Fuzz(func(t *testing.T, schedule, pages, config, stages, kernel []byte) {
		defer watch.Execution()()
		p, diags := readback.Program(texts([5][]byte{schedule, pages, config, stages, kernel}))
		if diags.Err() == nil && p == nil {
			t.Fatal("neither a program nor a reason")
		}
		if p == nil {
			return
		}
		readback.Compare(p, p)
		if diags.Err() == nil {
			validate.Program(p)
		}
	})
}
