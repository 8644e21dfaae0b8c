package main

import (
	"context"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

func text(of string) responses.ResponseNewParamsInputUnion {
	return responses.ResponseNewParamsInputUnion{OfString: openai.String(of)}
}

// respond compares a stream with the whole response, as the README of the client asks for both.
func respond(ctx context.Context, client *openai.Client) {
	ask := responses.ResponseNewParams{Model: "m", Input: text("Write me a haiku about computers"),
		Temperature: openai.Float(0), MaxOutputTokens: openai.Int(12)}
	whole := got(client.Responses.New(ctx, ask))
	must(whole.OutputText() != "" && (whole.Status == "completed" ||
		whole.IncompleteDetails.Reason == "max_output_tokens"), "a response", whole)
	must(whole.Usage.TotalTokens == whole.Usage.InputTokens+whole.Usage.OutputTokens, "a sum", whole.Usage)
	said, n := "", int64(0)
	var last responses.ResponseStreamEventUnion
	each(client.Responses.NewStreaming(ctx, ask), func(e responses.ResponseStreamEventUnion) {
		must(e.SequenceNumber == n, "events in their order", n, e)
		said += e.Delta
		last = e
		n++
	})
	must(said == whole.OutputText() && last.Response.OutputText() == said, "the same text", said, whole, last)
	must(last.Type == "response."+string(whole.Status), "the end", last)

	likely := ask
	likely.Include = []responses.ResponseIncludable{responses.ResponseIncludableMessageOutputTextLogprobs}
	likely.TopLogprobs = openai.Int(2)
	rows := got(client.Responses.New(ctx, likely)).Output[0].Content[0].Logprobs
	n = 0
	each(client.Responses.NewStreaming(ctx, likely), func(e responses.ResponseStreamEventUnion) {
		if e.Type != "response.output_text.delta" {
			return
		}
		for _, row := range e.AsResponseOutputTextDelta().Logprobs {
			must(len(row.TopLogprobs) == 2 && row.Token == rows[n].Token && row.Logprob == rows[n].Logprob,
				"the same in a stream", row, rows)
			n++
		}
	})
	must(int(n) == len(rows) && n > 0, "log-probabilities of all tokens", n, rows)

	ask.Text.Format = responses.ResponseFormatTextConfigUnionParam{
		OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "adult", Strict: openai.Bool(true),
			Schema: map[string]any{"const": true}}}
	held := got(client.Responses.New(ctx, ask))
	must(strings.TrimSpace(held.OutputText()) == "true", "what the schema says", held.OutputText(), held.Status)

	ask.PreviousResponseID = openai.String(whole.ID)
	_, err := client.Responses.New(ctx, ask)
	var refused *openai.Error
	must(errors.As(err, &refused) && refused.StatusCode == 400 && refused.Param == "previous_response_id",
		"a refusal", err)
	left := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "m", Input: text("a")})
	must(left.Next(), "a first event", left.Err())
	must(left.Close() == nil, "a stream that is closed")
}

// respondWithCalls sends what was answered back, with what the tool says.
func respondWithCalls(ctx context.Context, client *openai.Client) {
	ask := responses.ResponseNewParams{Model: "m", Tools: []responses.ToolUnionParam{{
		OfFunction: &responses.FunctionToolParam{Name: "weather", Description: openai.String("The weather at a place"),
			Parameters: map[string]any{"type": "object", "properties": map[string]any{}}}}}}
	ask.Input.OfInputItemList = append(ask.Input.OfInputItemList,
		responses.ResponseInputItemParamOfMessage("Warm?", responses.EasyInputMessageRoleUser))
	whole := got(client.Responses.New(ctx, ask))
	must(whole.OutputText() == "Let me see." && len(whole.Output) == 2, "a text and a call", whole)
	call := whole.Output[1].AsFunctionCall()
	must(call.Name == "weather" && call.Arguments == `{"place":"Bern"}`, "a call of weather", call)
	arguments := ""
	each(client.Responses.NewStreaming(ctx, ask), func(e responses.ResponseStreamEventUnion) {
		if e.Type == "response.function_call_arguments.delta" {
			arguments += e.Delta
		}
	})
	must(arguments == call.Arguments, "the same call", arguments)
	said, called := whole.Output[0].AsMessage().ToParam(), call.ToParam()
	result := responses.ResponseInputItemParamOfFunctionCallOutput("31")
	result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	ask.Input.OfInputItemList = append(ask.Input.OfInputItemList,
		responses.ResponseInputItemUnionParam{OfOutputMessage: &said},
		responses.ResponseInputItemUnionParam{OfFunctionCall: &called}, result)
	must(got(client.Responses.New(ctx, ask)).Status == "completed", "an answer to the tool")
}
