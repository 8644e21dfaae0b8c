// Package search looks for schedules that decode faster: a campaign proposes configurations, has each evaluated, keeps
// what is shown to be better, and writes down everything (docs/search.md).
//
// It knows configurations, verdicts and trials, and nothing of how a verdict comes about: package search/evaluate
// makes them, and amkc eval is the process that a campaign runs for each. A campaign is a directory of two files that
// nobody edits, campaign.json and trials.jsonl; State is a fold over the trials, so that a campaign that was killed
// goes on as if it had not been. It must not import the compiler.
package search
