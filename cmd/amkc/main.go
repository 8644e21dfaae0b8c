// Command amkc compiles a Hugging Face decoder checkpoint into a standalone CUDA project whose decode step is one
// persistent kernel. What it does is in package compiler/cli; this file only starts it.
package main

import (
	"os"

	"amkc/compiler/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
