package search

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// The kinds of files of a campaign.
var (
	keyFile      = infile.Kind{Name: "a key", Max: 1 << 10}
	campaignFile = infile.Kind{Name: "a campaign", Max: 4 << 20}
	trialsFile   = infile.Kind{Name: "a list of trials", Max: 1 << 30}
)

// A Key is the private half of a key pair. It signs verdicts, to distinguish the result of an evaluation from a number
// that somebody states. Anyone who can read it can forge a verdict: it prevents mistakes and invented numbers, and does
// not protect against the user's own account.
type Key ed25519.PrivateKey

// A PublicKey is the other half, which verifies verdicts and cannot sign them.
type PublicKey ed25519.PublicKey

// Public returns the public half.
func (k Key) Public() PublicKey { return PublicKey(ed25519.PrivateKey(k).Public().(ed25519.PublicKey)) }

// String returns the key in the form of campaign.json: 64 hexadecimal digits.
func (p PublicKey) String() string { return hex.EncodeToString(p) }

// Sign signs a verdict: it adds the public key, and the Ed25519 signature of everything else.
func (k Key) Sign(v *Verdict) {
	v.Signature = k.Public().String() + ":" + hex.EncodeToString(ed25519.Sign(ed25519.PrivateKey(k), signed(v)))
}

// signed are the bytes of a verdict that are signed: its JSON without the signature, as it is once it was written and
// read. What is not UTF-8 is not the same then.
func signed(v *Verdict) []byte {
	unsigned := *v
	unsigned.Signature = ""
	text, err := json.Marshal(&unsigned)
	if err != nil {
		panic(err) // of a type that has no JSON
	}
	return bytes.ReplaceAll(text, []byte(`\ufffd`), []byte("\ufffd"))
}

// Check verifies the signature of a verdict. The error is a diagnostic.
func (p PublicKey) Check(v *Verdict) error {
	by, text, _ := strings.Cut(v.Signature, ":")
	signature, err := hex.DecodeString(text)
	switch {
	case v.Signature == "":
		return diag.Errorf(codeForged, "verdict "+v.ID, "has no signature; want what amkc search eval --json prints, "+
			"unchanged")
	case by != p.String():
		return diag.Errorf(codeForged, "verdict "+v.ID, "is signed with the key %.8s, and the public key here is "+
			"%.8s; want a verdict of amkc search eval with the key of this campaign", by, p)
	// A signature has one spelling: a verdict cannot be recorded twice.
	case err != nil || hex.EncodeToString(signature) != text || !ed25519.Verify(ed25519.PublicKey(p), signed(v),
		signature):
		return diag.Errorf(codeForged, "verdict "+v.ID, "is not what its signature is of: something in it was "+
			"changed; want what amkc search eval --json prints, unchanged")
	}
	return nil
}

// The blocks of PEM that hold keys, as other tools write them.
const (
	privateBlock = "PRIVATE KEY" // PKCS #8
	publicBlock  = "PUBLIC KEY"  // PKIX
)

// PublicName is the name of the file for the public half of a new key.
func PublicName(path string) string { return path + ".pub" }

// LoadKey reads the key that signs verdicts. If there is none, it creates one, which only the user can read, and a file
// with its public half next to it.
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

// ReadPublicKey reads a key that verifies verdicts: a public key, or the public half of a private one.
func ReadPublicKey(path string) (PublicKey, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	if block, rest := pem.Decode(text); block != nil && block.Type == publicBlock && len(rest) == 0 {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if public, ok := key.(ed25519.PublicKey); ok {
				return PublicKey(public), nil
			}
		}
	}
	key, err := parseKey(path, text)
	if err != nil {
		return nil, diag.Errorf(codeKey, path, "is not a key; want a public or a private key of Ed25519 in PEM, "+
			"such as the .pub that amkc search eval and amkc search write when they make a key")
	}
	return key.Public(), nil
}

func readKeyFile(path string) ([]byte, error) {
	text, err := infile.Read(path, keyFile)
	if err != nil {
		return nil, diag.Errorf(codeKey, path, "cannot be read: %s; want the file of a key (--key)", infile.Reason(err))
	}
	return text, nil
}

func parseKey(path string, text []byte) (Key, error) {
	if block, rest := pem.Decode(text); block != nil && block.Type == privateBlock && len(rest) == 0 {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if private, ok := key.(ed25519.PrivateKey); ok {
				return Key(private), nil
			}
		}
	}
	return nil, diag.Errorf(codeKey, path, "is not a private key; want one of Ed25519 in PEM, or no file: amkc search "+
		"eval and amkc search make one. Earlier versions had a secret of 64 digits there, with which "+
		"nobody else could verify: rename or remove it")
}

// makeKey makes a key, unless another process has made one at the same time.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	text, err := encoded(privateBlock, x509.MarshalPKCS8PrivateKey, private)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".key-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	if text, err = encoded(publicBlock, x509.MarshalPKIXPublicKey, public); err != nil {
		return err
	}
	return outfile.Write(PublicName(path), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// encoded is a key in PEM.
func encoded(block string, marshal func(any) ([]byte, error), key any) ([]byte, error) {
	der, err := marshal(key)
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), err
}
