package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name string
		i    int
		want string
	}{
		{"embed", 3, "embed"}, {"L{i}.x", 0, "L00.x"}, {"L{i}.x", 7, "L07.x"}, {"L{i}.x", 123, "L123.x"},
		{"L{i+1}.x", 9, "L10.x"}, {"L{i-2}.x", 2, "L00.x"}, {"{i}{i+1}", 1, "0102"},
	} {
		got, err := Resolve(c.name, c.i)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	key, err := ResolveKey("model.layers.{i}.mlp.{i+10}", 3)
	require.NoError(t, err)
	require.Equal(t, "model.layers.3.mlp.13", key)
	for _, bad := range []string{"L{", "L{}", "L{j}", "L{i+}", "L{i+0}", "L{i++1}", "L{i+-1}", "L{i*2}", "L{i-4}",
		"L{i+99999999999999999999}"} {
		_, err := Resolve(bad, 3)
		require.Error(t, err, bad)
	}
}
