// Command device runs builds on a GPU machine that has no Go to make their launchers with:
//
//	device DIR run|check|bench|info [flags]     what DIR/NAME does
//	device DIR soak [flags]                     decodes for long, pass after pass, and compares the passes
//	device DIR passes [flags]                   compares passes of all kinds with single tokens, to the bit
//	device DIR drafts [flags]                   times texts with drafts and without, after a check
//	device DIR sequences [flags]                decodes texts that come and go, and compares each with itself alone
//	device DIR serving [flags]                  what the server costs, alongside its engine without HTTP
//	device DIR load [flags]                     what long prompts cost the sequences that decode alongside
//	device DIR clients [flags]                  serves many clients, and compares each answer with that of it alone
//	device turns [flags] DIR[:STEPS]...         benches builds interleaved, checked first, all of them open at once
//
// It is for bench/results.py. Exit codes are those of the launcher: 0 success; 1 the input is at fault, or passes
// differ; 2 bad usage or a broken environment. It imports packages of runtime, search/turns and bench/clients, and must
// not import the compiler: what it shows of a build must not depend on how the build was made.
package main

import (
	"fmt"
	"io"
	"os"

	"amkc/app/cli"
	"amkc/runtime/host"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "turns" {
		return takeTurns(args[1:], stdout, stderr)
	}
	if len(args) < 2 {
		fmt.Fprintln(stderr, "usage: device DIR run|check|bench|info|soak|passes|drafts|sequences|serving|load|"+
			"clients [flags]")
		fmt.Fprintln(stderr, "       device turns [flags] DIR[:STEPS]...")
		return 2
	}
	dir := args[0]
	facts, err := host.ReadFacts(dir)
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 1
	}
	if args[1] == "soak" {
		return soak(dir, args[2:], stdout, stderr)
	}
	if args[1] == "passes" {
		return passes(dir, args[2:], stdout, stderr)
	}
	if args[1] == "drafts" {
		return drafts(dir, args[2:], stdout, stderr)
	}
	if args[1] == "sequences" {
		return sequences(dir, args[2:], stdout, stderr)
	}
	if args[1] == "serving" {
		return serving(dir, args[2:], stdout, stderr)
	}
	if args[1] == "load" {
		return load(dir, args[2:], stdout, stderr)
	}
	if args[1] == "clients" {
		return manyClients(dir, args[2:], stdout, stderr)
	}
	return cli.Launcher{Model: facts.Model, Dir: dir}.Main(args[1:], stdin, stdout, stderr)
}
