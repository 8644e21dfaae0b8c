package search

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "verdict.key")
	_, err := ReadPublicKey(path)
	require.ErrorContains(t, err, "cannot be read")
	keys := make([]Key, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			keys[i], err = LoadKey(path)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	for _, k := range keys {
		require.Equal(t, keys[0], k, "several processes make one key")
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := LoadKey(path)
	require.NoError(t, err)
	require.Equal(t, keys[0], again)

	// The public half verifies, and signs nothing.
	public, err := ReadPublicKey(PublicName(path))
	require.NoError(t, err)
	v := passing(knobs.Settings{}, knobs.Settings{}, 0.9)
	keys[0].Sign(v)
	require.NoError(t, public.Check(v))
	same, err := ReadPublicKey(path)
	require.NoError(t, err)
	require.Equal(t, public, same)
	_, err = LoadKey(PublicName(path))
	require.ErrorContains(t, err, "is not a private key")
	private, err := os.ReadFile(path)
	require.NoError(t, err)
	text, err := os.ReadFile(PublicName(path))
	require.NoError(t, err)
	require.Regexp(t, "^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/]{59}=\n-----END PUBLIC KEY-----\n$", string(text))

	// A public key in PEM, made of the 32 bytes of a campaign.json.
	published := filepath.Join(t.TempDir(), "published.pub")
	require.NoError(t, os.WriteFile(published, []byte("-----BEGIN PUBLIC KEY-----\n"+
		"MCowBQYDK2VwAyEAgyClGXfYw4yopJJ8Zw31gh5El2GUXhXp77JqFQnSMOo=\n-----END PUBLIC KEY-----\n"), 0o666))
	public, err = ReadPublicKey(published)
	require.NoError(t, err)
	require.Equal(t, toyPublic, public)

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	foreign, err := encoded(privateBlock, x509.MarshalPKCS8PrivateKey, other)
	require.NoError(t, err)
	foreignPublic, err := encoded(publicBlock, x509.MarshalPKIXPublicKey, &other.PublicKey)
	require.NoError(t, err)
	for name, bad := range map[string]string{"short": "short", "empty": "", "another kind": string(foreign),
		"another public kind": string(foreignPublic), "more than a key": string(private) + "and more",
		"more than a public key": string(text) + "and more",
		// What amkc had before: a secret, with which anyone who could verify could sign.
		"an earlier key": strings.Repeat("0a", 32) + "\n"} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = LoadKey(path)
		require.ErrorContains(t, err, "is not a private key; want one of Ed25519 in PEM, or no file", name)
		_, err = ReadPublicKey(path)
		require.ErrorContains(t, err, "is not a key; want a public or a private key of Ed25519 in PEM", name)
	}
}
