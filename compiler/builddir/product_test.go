package builddir

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/runtime/host"
)

// What make makes is known by the package that it is made of; a program of the user's under the same name is not it.
func TestProductsOfGo(t *testing.T) {
	dir := t.TempDir()
	for _, product := range []struct {
		module, below       string
		library, executable bool
	}{
		{"amkc.local/runtime", "app/library/shared", true, false},
		{"amkc.local/runtime", "library/shared", true, false}, // of older releases
		{"launcher", "internal/library/shared", true, false},  // of older releases
		{"launcher", "", false, true},
		{"example.com/mine", "library/shared", false, false},
	} {
		name := product.module + "/" + product.below
		source, file := filepath.Join(dir, name), filepath.Join(dir, "made")
		put(t, dir, map[string]string{product.module + "/go.mod": "module " + product.module + "\n\ngo " +
			codegen.LauncherGo + "\n", name + "/main.go": "package main\n\nfunc main() {}\n"})
		cmd := exec.Command("go", "build", "-o", file, ".")
		cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, product.library, IsProduct(file, host.LibraryFile), name)
		require.Equal(t, product.executable, IsProduct(file, "demo"), name)
	}
}
