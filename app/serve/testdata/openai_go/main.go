// Command openai_go talks to two servers with OpenAI's client for Go: openai_go URL TOOLS_URL. What is not as it should
// be ends it. The first server has the API key "k" and the model "m", which decodes; the second answers "Let me see."
// and a call of a tool. It is a module of its own, so that the client is not a dependency of amkc.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openai_go URL TOOLS_URL")
		os.Exit(2)
	}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintln(os.Stderr, p)
			os.Exit(1)
		}
	}()
	ctx := context.Background()
	client := openai.NewClient(option.WithBaseURL(os.Args[1]), option.WithAPIKey("k"), option.WithMaxRetries(0))
	models(ctx, &client)
	respond(ctx, &client)
	text := chat(ctx, &client)
	completions(ctx, &client)
	embeddings(ctx, &client)
	refusals(ctx, &client)
	together(ctx, &client, text)
	tools := openai.NewClient(option.WithBaseURL(os.Args[2]), option.WithAPIKey("none"), option.WithMaxRetries(0))
	calls(ctx, &tools)
	respondWithCalls(ctx, &tools)
}

// must ends the program unless a claim holds.
func must(holds bool, what string, seen ...any) {
	if !holds {
		panic(fmt.Sprintf("%s: %+v", what, seen))
	}
}

func got[T any](v T, err error) T {
	must(err == nil, "an error", err)
	return v
}

func models(ctx context.Context, client *openai.Client) {
	page := got(client.Models.List(ctx))
	must(len(page.Data) == 1 && page.Data[0].ID == "m", "one model, m", page.Data)
	must(got(client.Models.Get(ctx, "m")).ID == "m", "model m")
}

func embeddings(ctx context.Context, client *openai.Client) {
	of := func(input ...string) *openai.CreateEmbeddingResponse {
		return got(client.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "m",
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: input}}))
	}
	both := of("def fib(n):", "import os")
	must(len(both.Data) == 2 && both.Usage.TotalTokens > 0, "two embeddings", both)
	squares := 0.0
	for _, x := range both.Data[1].Embedding {
		squares += x * x
	}
	must(squares > 0.99999 && squares < 1.00001, "an embedding of length 1", squares)
	must(slices.Equal(of("import os").Data[0].Embedding, both.Data[1].Embedding), "the same embedding again")
}

func greedy() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "m", Temperature: openai.Float(0), MaxTokens: openai.Int(12),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("def fib(n):")}}
}

// chat compares a stream with the whole answer, and returns its text.
func chat(ctx context.Context, client *openai.Client) string {
	whole := got(client.Chat.Completions.New(ctx, greedy()))
	choice := whole.Choices[0]
	must(choice.Message.Role == "assistant" && (choice.FinishReason == "stop" || choice.FinishReason == "length"),
		"an answer", choice)
	must(whole.Usage.TotalTokens == whole.Usage.PromptTokens+whole.Usage.CompletionTokens, "a sum", whole.Usage)

	ask := greedy()
	ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	var all openai.ChatCompletionAccumulator
	each(client.Chat.Completions.NewStreaming(ctx, ask), func(chunk openai.ChatCompletionChunk) {
		must(all.AddChunk(chunk), "a chunk that belongs to the answer", chunk)
	})
	streamed := all.Choices[0]
	must(streamed.Message.Content == choice.Message.Content && streamed.FinishReason == choice.FinishReason,
		"the same answer", streamed, choice)
	must(all.Usage.CompletionTokens == whole.Usage.CompletionTokens, "the same cost", all.Usage, whole.Usage)

	ask = greedy()
	ask.Logprobs, ask.TopLogprobs = openai.Bool(true), openai.Int(2)
	text := ""
	for _, row := range got(client.Chat.Completions.New(ctx, ask)).Choices[0].Logprobs.Content {
		must(len(row.TopLogprobs) == 2 && row.Logprob == row.TopLogprobs[0].Logprob, "the likeliest first", row)
		for _, b := range row.Bytes {
			text += string([]byte{byte(b)})
		}
	}
	must(text == choice.Message.Content, "the bytes of the tokens", text)
	return text
}

func each[T any](stream *ssestream.Stream[T], f func(T)) {
	for stream.Next() {
		f(stream.Current())
	}
	must(stream.Err() == nil, "a stream without an error", stream.Err())
}

func completions(ctx context.Context, client *openai.Client) {
	ask := openai.CompletionNewParams{Model: "m", Temperature: openai.Float(0), MaxTokens: openai.Int(12),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("def fib(n):")}}
	whole := got(client.Completions.New(ctx, ask)).Choices[0].Text
	text := ""
	each(client.Completions.NewStreaming(ctx, ask), func(c openai.Completion) {
		for _, choice := range c.Choices {
			text += choice.Text
		}
	})
	must(text == whole, "the same text", text, whole)
	ask.Temperature, ask.TopP = openai.Float(1.3), openai.Float(0.9)
	var drawn [3]string
	for i, seed := range []int64{1, 2, 1} {
		ask.Seed = openai.Int(seed)
		drawn[i] = got(client.Completions.New(ctx, ask)).Choices[0].Text
	}
	must(drawn[0] == drawn[2] && drawn[0] != drawn[1], "a text for each seed", drawn)
}

func refusals(ctx context.Context, client *openai.Client) {
	for status, change := range map[int]func(*openai.ChatCompletionNewParams){
		404: func(p *openai.ChatCompletionNewParams) { p.Model = "other" },
		400: func(p *openai.ChatCompletionNewParams) { p.Messages = nil },
	} {
		ask := greedy()
		change(&ask)
		_, err := client.Chat.Completions.New(ctx, ask)
		var refused *openai.Error
		must(errors.As(err, &refused) && refused.StatusCode == status && refused.Message != "" && refused.Code != "",
			"a refusal", status, err)
	}
	_, err := client.Models.List(ctx, option.WithAPIKey("x"))
	var refused *openai.Error
	must(errors.As(err, &refused) && refused.StatusCode == 401, "a refusal of the key", err)
}

// together asks at the same time, and goes away from a stream.
func together(ctx context.Context, client *openai.Client, text string) {
	texts := make([]string, 16)
	var wait sync.WaitGroup
	for i := range texts {
		wait.Go(func() {
			if answer, err := client.Chat.Completions.New(ctx, greedy()); err == nil {
				texts[i] = answer.Choices[0].Message.Content
			}
		})
	}
	wait.Wait()
	for _, other := range texts {
		must(other == text, "the same answer for all", texts)
	}
	ask := greedy()
	ask.MaxTokens = openai.Int(100)
	left := client.Chat.Completions.NewStreaming(ctx, ask)
	must(left.Next(), "a first chunk", left.Err())
	must(left.Close() == nil, "a stream that is closed")
	must(got(client.Chat.Completions.New(ctx, greedy())).Choices[0].Message.Content == text, "an answer after it")
}

func calls(ctx context.Context, client *openai.Client) {
	ask := greedy()
	ask.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:       "weather",
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
	})}
	ask.MaxTokens = openai.Int(80)
	choice := got(client.Chat.Completions.New(ctx, ask)).Choices[0]
	must(choice.FinishReason == "tool_calls" && choice.Message.Content == "Let me see.", "a call", choice)
	call := choice.Message.ToolCalls[0].Function
	must(call.Name == "weather" && call.Arguments == `{"place":"Bern"}`, "a call of weather", call)
	var all openai.ChatCompletionAccumulator
	each(client.Chat.Completions.NewStreaming(ctx, ask), func(chunk openai.ChatCompletionChunk) {
		must(all.AddChunk(chunk), "a chunk that belongs to the answer", chunk)
	})
	streamed := all.Choices[0]
	must(streamed.FinishReason == "tool_calls" && streamed.Message.ToolCalls[0].Function.Arguments == call.Arguments,
		"the same call", streamed)
	ask.Messages = append(ask.Messages, choice.Message.ToParam(), openai.ToolMessage("31", choice.Message.ToolCalls[0].ID))
	got(client.Chat.Completions.New(ctx, ask))
}
