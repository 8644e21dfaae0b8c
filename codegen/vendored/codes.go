package vendored

import "amkc/ir/diag"

// The codes that this package reports.
var (
	CodeMissing = diag.New("AMK5301", "the launcher's third-party sources are not at hand", `
An emitted launcher carries the sources of github.com/ebitengine/purego, through which it calls the CUDA driver, so that
it builds with no network. They are embedded in an amkc that was built after `+"`go generate ./codegen/vendored`"+`; any
other amkc takes them from the Go module cache, and there they were not found.

    github.com/ebitengine/purego: error: github.com/ebitengine/purego v0.11.3 is neither embedded in this amkc nor in the Go module cache, …

Run the `+"`go mod download`"+` command that the message gives, once, with a network. Or build amkc from its repository
after go generate.`)

	CodeChanged = diag.New("AMK5302", "the launcher's third-party sources are not the expected ones", `
The sources of github.com/ebitengine/purego that were found, in the Go module cache or embedded in amkc, do not match
the digest that amkc was made with. A launcher is never emitted with them: the same input must give the same build.

The usual causes are a file edited in the module cache, and an embedded archive left over from an older version. Delete
the module's folder in the cache and download it again, or run go generate ./codegen/vendored and rebuild amkc.`)
)
