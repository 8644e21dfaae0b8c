package checkpoint

import (
	"bytes"

	"amkc/ir/diag"
)

// pointerStart is how the file begins that git puts instead of one kept by git-lfs.
var pointerStart = []byte("version https://git-lfs.github.com/spec/v1")

// refusePointer refuses a file that begins with start if it is a pointer, and returns nil otherwise.
func refusePointer(name string, start []byte) *diag.Diagnostic {
	if !bytes.HasPrefix(start, pointerStart) {
		return nil
	}
	return diag.Errorf(codePointer, name,
		"this is a git-lfs pointer instead of the file; fetch the files of the model with git lfs pull")
}

// pointerIn is refusePointer for an open file of the given size.
func pointerIn(r region, name string, size int64) *diag.Diagnostic {
	if size < int64(len(pointerStart)) {
		return nil
	}
	start := make([]byte, len(pointerStart))
	if err := copyOut(r, name, start, 0); err != nil {
		return err
	}
	return refusePointer(name, start)
}
