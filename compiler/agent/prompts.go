package agent

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"amkc/docs"
)

// A prompt is a text with arguments in their order.
type prompt struct {
	name, description string
	arguments         []*mcp.PromptArgument
	text              func(arguments map[string]string) (string, error)
}

func needed(name, description string) *mcp.PromptArgument {
	return &mcp.PromptArgument{Name: name, Description: description, Required: true}
}

var prompts = []prompt{
	{name: "campaign", description: "Run a campaign from its beginning to its report.",
		arguments: []*mcp.PromptArgument{needed("model", "directory of the model"), needed("target", "GPU to "+
			"search for"),
			needed("device", "cost predicts, cuda measures"), needed("trials", "how many trials there may be")},
		text: func(a map[string]string) (string, error) {
			program, err := docs.Pages.ReadFile("program.md")
			return fmt.Sprintf("%s\nLinks are relative to the resource amkc://docs/program.md.\n\n## Your task\n\n"+
				"Model %q, target %q, device %q, at most %s trials. Choose a directory for the campaign, run it to "+
				"its end, and report.\n", program, a["model"], a["target"], a["device"],
				a["trials"]), err
		}},
	{name: "next_trial", description: "Think of one hypothesis for a campaign, and have it judged.",
		arguments: []*mcp.PromptArgument{needed("campaign", "directory of the campaign")},
		text: func(a map[string]string) (string, error) {
			return fmt.Sprintf(nextTrial, a["campaign"]), nil
		}},
	{name: "review", description: "Read a campaign and say what was found, and what was not shown.",
		arguments: []*mcp.PromptArgument{needed("campaign", "directory of the campaign")},
		text: func(a map[string]string) (string, error) {
			return fmt.Sprintf(review, a["campaign"]), nil
		}},
}

const nextTrial = `The campaign is in %q. Read campaign_status and the last trials. Then:

1. Choose a region that is open and has a large share of a step.
2. State one hypothesis in a sentence: which knob, which way, and what of the step it would shorten. Read what the knob
   does with explain. Do not repeat settings that were tried.
3. Call eval with the settings as the candidate, the best so far as the baseline, the campaign's model, target, device
   and positions, rung final, and save the result to a file.
4. Call campaign_record with that file, whatever the verdict says. A failure is a finding.
5. Say in two sentences what was learnt. A prediction is called a prediction.
`

const review = `The campaign is in %q. Read its trials and campaign_status, and call campaign_verify first. Then report:

- what was best, and the ratio at held-out positions with its interval; without such a trial, say "not confirmed";
- how many trials there were, by class, and which codes rejected configurations;
- which knobs made a difference, and which made none;
- what was not looked at. If nothing better was found, that is the result. Predictions are not measurements.
`

func (s *Server) addPrompts() {
	for _, p := range prompts {
		s.mcp.AddPrompt(&mcp.Prompt{Name: p.name, Description: p.description, Arguments: p.arguments},
			func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				text, err := p.text(request.Params.Arguments)
				if err != nil {
					return nil, err
				}
				return &mcp.GetPromptResult{Description: p.description,
					Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
			})
	}
}
