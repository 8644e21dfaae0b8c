package agent

import (
	"context"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"amkc/docs"
)

// mostText is how much of a file a client is given: the end of it, where it has more.
const mostText = 4 << 20

const scheme = "amkc://"

// campaignFiles are the files of a campaign that are resources: amkc://trials/DIR and so on.
var campaignFiles = []struct{ name, file, mime, description string }{
	{"campaign", "campaign.json", "application/json", "What a campaign was asked to do."},
	{"trials", "trials.jsonl", "application/jsonl", "The trials of a campaign, one a line; the last 4 MiB of them."},
	{"results", "results.tsv", "text/tab-separated-values",
		"The trials of a campaign as a table, as of the last call that has ended."},
	{"report", "report.html", "text/html", "The report of a campaign as a page, as of the last call that has ended."},
}

// textTypes are the media types of what pages link to.
var textTypes = map[string]string{".md": "text/markdown", ".txt": "text/plain", ".html": "text/html",
	".json": "application/json", ".jsonl": "application/jsonl"}

func (s *Server) addResources() error {
	pages, err := fs.Glob(docs.Pages, "*.md")
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := docs.Pages.ReadFile(page)
		if err != nil {
			return err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		uri := scheme + "docs/" + page
		s.mcp.AddResource(&mcp.Resource{URI: uri, Name: page, Title: title, MIMEType: "text/markdown",
			Size: int64(len(text))},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return resource(uri, "text/markdown", text), nil
			})
	}
	// Links of a page are relative to it, and lead to more than the list shows.
	linked := scheme + "docs/"
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: linked + "{+file}", Name: "docs",
		Description: "A page, or a text that a page links to: results/campaigns/measured.jsonl."},
		func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := request.Params.URI
			file := strings.TrimPrefix(uri, linked)
			text, err := docs.Pages.ReadFile(file)
			if err != nil {
				return nil, mcp.ResourceNotFoundError(uri)
			}
			return resource(uri, textTypes[path.Ext(file)], text), nil
		})
	for _, f := range campaignFiles {
		prefix := scheme + f.name + "/"
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: prefix + "{+campaign}", Name: f.name,
			MIMEType: f.mime, Description: f.description},
			func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				uri := request.Params.URI
				dir, err := url.PathUnescape(strings.TrimPrefix(uri, prefix))
				if err != nil {
					return nil, err
				}
				text, err := s.read(dir+"/"+f.file, mostText)
				if err != nil {
					return nil, err
				}
				return resource(uri, f.mime, text), nil
			})
	}
	return nil
}

func resource(uri, mime string, text []byte) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: string(text)}}}
}
