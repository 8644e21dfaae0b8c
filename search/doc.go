// Package search searches for schedules that decode faster: a campaign proposes configurations, evaluates each, keeps
// those that are significantly faster, and records everything (docs/search.md).
//
// It works on configurations, verdicts and trials. Package search/evaluate makes verdicts, and a campaign runs the
// process amkc search eval for each. A campaign is a directory of two files, campaign.json and trials.jsonl; State is a
// fold over the trials, so that a campaign that was killed continues as if it had not been. The package must not import
// the compiler.
package search
