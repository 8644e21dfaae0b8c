package agent

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"amkc/docs"
)

// connected is a client of a server whose root has a campaign in DIR, as pages call it.
func connected(t *testing.T) *mcp.ClientSession {
	t.Helper()
	root := t.TempDir()
	for _, f := range campaignFiles {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "DIR"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "DIR", f.file), []byte("{}\n"), 0o644))
	}
	s, err := New(Options{Root: root})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	here, there := mcp.NewInMemoryTransports()
	_, err = s.mcp.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// told is everything that a client is told by name: pages, prompts, tools and what the server says of itself.
func told(t *testing.T, client *mcp.ClientSession) map[string]string {
	t.Helper()
	texts := map[string]string{"instructions": client.InitializeResult().Instructions}
	pages, err := fs.Glob(docs.Pages, "*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := docs.Pages.ReadFile(page)
		require.NoError(t, err)
		texts["docs/"+page] = string(text)
	}
	for tool, err := range client.Tools(t.Context(), nil) {
		require.NoError(t, err)
		text, err := json.Marshal(tool)
		require.NoError(t, err)
		texts["tool "+tool.Name] = string(text)
	}
	for prompt, err := range client.Prompts(t.Context(), nil) {
		require.NoError(t, err)
		arguments := map[string]string{}
		for _, a := range prompt.Arguments {
			arguments[a.Name] = "DIR"
		}
		got, err := client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name, Arguments: arguments})
		require.NoError(t, err)
		texts["prompt "+prompt.Name] = got.Messages[0].Content.(*mcp.TextContent).Text
	}
	return texts
}

var (
	namedURI = regexp.MustCompile(`amkc://[\w./-]*\w`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// notTexts are files of docs that pages link to and that are not text for readers.
	notTexts = []string{".png", ".svg", ".gz", ".json"}
)

// Whatever a page, a prompt, a tool or the server names as a resource can be read, and so can what pages link to.
func TestNamedResourcesAreServed(t *testing.T) {
	client := connected(t)
	read := func(where, uri string) {
		got, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		require.NoError(t, err, "%s names %s", where, uri)
		require.NotEmpty(t, got.Contents[0].Text, uri)
		require.NotEmpty(t, got.Contents[0].MIMEType, uri)
	}
	named, linked := 0, 0
	for where, text := range told(t, client) {
		for _, uri := range namedURI.FindAllString(text, -1) {
			read(where, strings.Replace(uri, "PAGE", "search", 1))
			named++
		}
		if !strings.HasPrefix(where, "docs/") {
			continue
		}
		page, err := url.Parse(scheme + where)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(m[1])
			require.NoError(t, err)
			outside := to.IsAbs() || to.Path == "" || strings.HasPrefix(to.Path, "../")
			if outside || slices.Contains(notTexts, path.Ext(to.Path)) && to.Path != "config.schema.json" {
				continue
			}
			to.Fragment = ""
			read(where, page.ResolveReference(to).String())
			linked++
		}
	}
	require.Greater(t, named, 5)
	require.Greater(t, linked, 200)

	for _, uri := range []string{"amkc://docs/nothing.md", "amkc://docs/../program.md", "amkc://docs/",
		"amkc://none/DIR", "amkc://docs/results", "amkc://trials/none"} {
		_, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		require.Error(t, err, uri)
	}
}
