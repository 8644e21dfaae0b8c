package search

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// The kinds of files of a campaign.
var (
	keyFile      = infile.Kind{Name: "a key", Max: 1 << 10}
	campaignFile = infile.Kind{Name: "a campaign", Max: 4 << 20}
	trialsFile   = infile.Kind{Name: "a list of trials", Max: 1 << 30}
)

const keyBytes = 32

// LoadKey reads the key that verdicts are signed with. Where there is none, one is made, which only the user can read.
func LoadKey(path string) (Key, error) {
	text, err := infile.Read(path, keyFile)
	if err != nil { // whatever it is: where there is a file, none is made
		if err = makeKey(path); err == nil {
			text, err = infile.Read(path, keyFile)
		}
	}
	if err != nil {
		return nil, diag.Errorf(codeKey, path, "cannot be read or made: %s", infile.Reason(err))
	}
	return parseKey(path, text)
}

// ReadKey reads a key that verdicts were signed with: where there is none, it makes none.
func ReadKey(path string) (Key, error) {
	text, err := infile.Read(path, keyFile)
	if err != nil {
		return nil, diag.Errorf(codeKey, path, "cannot be read: %s; want the file that the verdicts are signed with",
			infile.Reason(err))
	}
	return parseKey(path, text)
}

func parseKey(path string, text []byte) (Key, error) {
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, diag.Errorf(codeKey, path, "is no key; want %d bytes as hexadecimal digits, or no file: amkc "+
			"eval and amkc search make one", keyBytes)
	}
	return key, nil
}

// makeKey makes a key, unless another process has made one at the same time.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	key := make([]byte, keyBytes)
	rand.Read(key)
	file, err := os.CreateTemp(filepath.Dir(path), ".key-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(hex.EncodeToString(key) + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
