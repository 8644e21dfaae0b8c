package progress

import (
	"os"
	"syscall"
	"unsafe"
)

// window is what a terminal answers about its size.
type window struct{ rows, columns, _, _ uint16 }

func ask(f *os.File) (window, bool) {
	var w window
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&w)))
	return w, errno == 0
}

// isTerminal takes for a terminal what has the size of a window, even if it does not know which.
func isTerminal(f *os.File) bool {
	_, ok := ask(f)
	return ok
}

// columns is the width of the terminal, 80 if it does not know.
func columns(f *os.File) int {
	if w, ok := ask(f); ok && w.columns > 0 {
		return int(w.columns)
	}
	return 80
}
