//go:build !unix

package infile

import "os"

const openFlags = os.O_RDONLY
