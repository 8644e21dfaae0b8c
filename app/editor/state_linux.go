package editor

import (
	"os"
	"syscall"
	"unsafe"
)

// A state is the settings of the terminal; nil: they are not known.
type state struct{ settings *syscall.Termios }

func current() state {
	s := state{&syscall.Termios{}}
	if !control(os.Stdin, syscall.TCGETS, s.settings) {
		return state{}
	}
	return s
}

// restore also ends the mode in which a terminal marks what is pasted.
func (s state) restore() {
	if s.settings != nil && control(os.Stdin, syscall.TCSETS, s.settings) {
		_, _ = os.Stdout.WriteString("\x1b[?2004l\n")
	}
}

func control(terminal *os.File, request uintptr, settings *syscall.Termios) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(settings)))
	return errno == 0
}
