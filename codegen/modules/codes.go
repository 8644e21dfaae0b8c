package modules

import "amkc/ir/diag"

// The codes that this package reports.
var (
	CodeMissing = diag.New("AMK5301", "the launcher's third-party modules are not at hand", `
An emitted launcher carries the Go modules that it needs, such as github.com/ebitengine/purego, through which it calls
the CUDA driver, so that it builds with no network. They are embedded in an amkc that was built by make build; any other
amkc takes them from the Go module cache, and there they were not found.

    launcher: error: its modules are neither embedded in this amkc nor in the Go module cache, …

Run the `+"`go mod download`"+` command that the message gives, once, with a network. Or build amkc from its repository
with make build.`)

	CodeChanged = diag.New("AMK5302", "a third-party module of the launcher is not the expected one", `
A file of a module that was found, in the Go module cache or embedded in amkc, does not match the digest that amkc was
made with. A launcher is never emitted with it: the same input must give the same build.

The usual causes are a file that was edited or damaged in the module cache, and a module that was fetched from its
repository rather than from a module proxy: its files are the same then, but not always the zip around them. Delete the
file that the message names and download the module again, or build amkc with make build, which embeds the modules.`)
)
