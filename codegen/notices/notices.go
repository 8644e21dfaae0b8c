// Package notices has the licenses of the third-party code that amkc and its builds contain: the Go modules that are
// linked or carried, and the runtime and standard library of Go. They are the modules' own files, which `go generate`
// collects for the versions of go.mod.
//
// It has texts and no code, and imports nothing.
package notices

import _ "embed"

//go:generate go run ./gen

// File is the name of the notices in a build.
const File = "THIRD_PARTY_NOTICES"

// Amkc are the notices of amkc itself and of libamkref.
//
//go:embed amkc.txt
var Amkc string

// Build are the notices of a build: of its executable, its library, and the modules in launcher/modules.
//
//go:embed build.txt
var Build string
