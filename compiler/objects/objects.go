// Package objects caches the outputs of compilers. The name of a file is a digest of all of its inputs: sources, the
// headers that they include, flags, the version that the compiler prints, and the variables that it reads. Headers of
// the system are not among them. The package runs no compiler, and does not depend on builds.
package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/runtime/progress"
)

// An Object is a file for the cache.
type Object struct {
	Name string // for messages
	Path string
	Make func(ctx context.Context, dir, out string) error // in a directory of its own
}

// Provide makes objects that are not in the cache, one per core at a time, and returns their number. Errors of writing
// have a code; errors of Make are returned unchanged if they are diagnostics.
func Provide(ctx context.Context, code *diag.Code, activity string, all []Object, report progress.Func) (made int,
	err error) {
	var missing []Object
	for _, o := range all {
		if _, err := os.Stat(o.Path); err != nil {
			missing = append(missing, o)
		}
	}
	step := progress.Step{Activity: activity, Total: int64(len(missing)), Unit: "sources"}
	var mu sync.Mutex
	err = SideBySide(len(missing), runtime.NumCPU(), func(i int) error {
		err := missing[i].provide(ctx, code)
		mu.Lock()
		defer mu.Unlock()
		step.Done++
		step.Activity = activity + ", " + missing[i].Name
		report.Report(step)
		return err
	})
	return len(missing), err
}

// askAgain is how often a process checks whether another one has made what it waits for.
const askAgain = 50 * time.Millisecond

// provide makes an object in the cache. Of several processes one makes it, and the others wait.
func (o *Object) provide(ctx context.Context, code *diag.Code) error {
	const want = "want a cache that can be written to"
	var claim *outfile.Claim
	for {
		c, _, err := outfile.Hold(o.Path + ".lock")
		if err == nil {
			claim = c
			break
		}
		if !errors.Is(err, outfile.ErrBusy) {
			return diag.Errorf(code, o.Path, "cannot be made: %s; "+want, infile.Reason(err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
	defer claim.Release()
	if _, err := os.Stat(o.Path); err == nil {
		return nil // made in the meantime
	}
	work, err := os.MkdirTemp("", "amkc-objects-")
	if err != nil {
		return diag.Errorf(code, o.Name, "there is no temporary directory: %s", infile.Reason(err))
	}
	defer os.RemoveAll(work)
	var refused *diag.Diagnostic
	err = Replace(o.Path, func(to string) error { return o.Make(ctx, work, to) })
	if err == nil || errors.As(err, &refused) || ctx.Err() != nil {
		return err
	}
	return diag.Errorf(code, o.Path, "cannot be written: %s; "+want, infile.Reason(err))
}

// Replace writes a file next to its path and renames it.
func Replace(at string, write func(to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(at), ".amkc-*")
	if err != nil {
		return err
	}
	f.Close()
	if err = write(f.Name()); err == nil {
		err = os.Rename(f.Name(), at)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Digest returns a digest of files and of further texts, which identify the output.
func Digest(files map[string][]byte, texts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "amkc explore 1\n%q\n", texts)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%x %q\n", sha256.Sum256(files[name]), name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// variables change which headers, libraries, programs and flags g++, clang++ and nvcc use.
var variables = strings.Fields("CCC_OVERRIDE_OPTIONS COMPILER_PATH CPATH CPLUS_INCLUDE_PATH C_INCLUDE_PATH " +
	"GCC_EXEC_PREFIX LIBRARY_PATH NVCC_APPEND_FLAGS NVCC_CCBIN NVCC_PREPEND_FLAGS")

// Environment returns the variables that are set and change what compilers produce, for a digest; "" if none is set.
func Environment() string {
	var text strings.Builder
	for _, name := range variables {
		if value, ok := os.LookupEnv(name); ok {
			fmt.Fprintf(&text, "%s=%q\n", name, value)
		}
	}
	return text.String()
}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s*"([^"]+)"`)

// Includes returns the paths that a file includes in quotes, under any condition.
func Includes(name string, text []byte) (paths []string) {
	for _, m := range includeLine.FindAllSubmatch(text, -1) {
		paths = append(paths, path.Join(path.Dir(name), string(m[1])))
	}
	return paths
}

// Included returns sources and the files that they include, under any condition.
func Included(files map[string][]byte, sources ...string) map[string][]byte {
	all := map[string][]byte{}
	var add func(name string)
	add = func(name string) {
		if all[name] != nil || files[name] == nil {
			return
		}
		all[name] = files[name]
		for _, of := range Includes(name, files[name]) {
			add(of)
		}
	}
	for _, name := range sources {
		add(name)
	}
	return all
}
