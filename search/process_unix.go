//go:build unix

package search

import (
	"os/exec"
	"syscall"
)

// apart gives a command a process group of its own, so that what it starts can be ended with it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ask asks all processes of the group to end.
func ask(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// end kills what is left of the group.
func end(cmd *exec.Cmd) {
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
