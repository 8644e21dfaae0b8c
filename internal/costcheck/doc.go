// Package costcheck holds the cost model to what was measured (docs/results), keeps the tables of docs/cost-model.md,
// and tries the model on generated programs. It is tests alone: nothing imports it.
package costcheck
