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
	"encoding/json"
	"fmt"
	"io"
	"os"

	"amkc/app/cli"
	"amkc/runtime/host"
)

// measurements are the verbs that a launcher does not have.
var measurements = map[string]func(dir string, args []string, stdout, stderr io.Writer) int{
	"soak": soak, "passes": passes, "drafts": drafts, "sequences": sequences, "serving": serving, "load": load,
	"clients": manyClients,
}

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
	if measure := measurements[args[1]]; measure != nil {
		return measure(dir, args[2:], stdout, stderr)
	}
	return cli.Launcher{Model: facts.Model, Dir: dir}.Main(args[1:], stdin, stdout, stderr)
}

// report prints a result as JSON, unless there is an error, and returns the exit code.
func report(result any, passed bool, err error, stdout, stderr io.Writer) int {
	if err == nil {
		err = json.NewEncoder(stdout).Encode(result)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	case !passed:
		return 1
	}
	return 0
}
