package compiler

import "syscall"

// fileSystemSpace asks the file system. One without blocks, such as /proc, has no size to compare with.
func fileSystemSpace(dir string) (free uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
