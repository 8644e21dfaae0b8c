// Package vendored supplies the third-party Go sources that an emitted launcher carries, so that it builds with no
// network: github.com/ebitengine/purego, as `go mod vendor` would lay it out.
//
// The sources come from the archive embedded at build time (see [Pack]), or else from the Go module cache of this
// machine. Both must match one digest, so a build does not depend on which it was.
//
// It imports the standard library and ir/diag only.
package vendored

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"amkc/ir/diag"
)

//go:generate go run ./gen

// What is vendored. These follow amkc's own go.mod and go.sum, and a test holds them to it.
const (
	Module  = "github.com/ebitengine/purego"
	Version = "v0.11.3"

	sum      = "h1:OB+JLpdm7ioymhyA+6s5kbb/uOuYycAgL8NNTFc5MLg="
	goModSum = "h1:DCHPP08djqhNSoTfImcnHYQRZmd0qhakvrozqaEYhGQ="

	// filesDigest is the digest of what Files returns.
	filesDigest = "6ebe4c81dbeca3526e504e4969ba40a23206199302bc538cfa14af4aca8671a8"
)

// Require returns the requirement of the launcher's go.mod, without the keyword: `MODULE VERSION`.
func Require() string { return Module + " " + Version }

// GoSum returns the launcher's go.sum.
func GoSum() string {
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", Module, Version, sum, goModSum)
}

// Files returns the launcher's vendor folder: slash-separated paths from the launcher's root, `vendor/modules.txt`
// among them, and contents. The go.mod beside it must hold [Require] and no other requirement. Errors are
// diagnostics, [CodeMissing] and [CodeChanged].
func Files() (map[string][]byte, error) {
	files, err := fromArchive(embedded)
	if err != nil {
		return nil, err
	}
	if files != nil {
		return verified(files, ArchiveName, "run `go generate ./codegen/vendored` and build amkc again")
	}
	dir, err := moduleDir()
	if err != nil {
		return nil, err
	}
	if files, err = FromModule(dir); err != nil {
		return nil, err
	}
	return verified(files, dir, downloadAgain)
}

// downloadAgain is the remedy for a module cache that does not hold what it should.
const downloadAgain = "delete that folder and run `go mod download " + Module + "@" + Version + "`"

// verified returns files if they are the expected ones; where and remedy are for the message if not.
func verified(files map[string][]byte, where, remedy string) (map[string][]byte, error) {
	if got := digest(files); got != filesDigest {
		return nil, diag.Errorf(CodeChanged, where,
			"these are not the sources of %s that amkc was made for (sha256 %s, "+
				"want %s); %s", Require(), got, filesDigest, remedy)
	}
	return files, nil
}

// digest is the SHA-256, in hex, of all names and contents in name order.
func digest(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s\x00%d\x00", name, len(files[name]))
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
