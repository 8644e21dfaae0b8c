// Package importers makes the operator graph of a checkpoint. Import reads config.json with the importer of its family,
// refuses what is not modelled, and accounts for every tensor of the files. A family has a file of its own, unless it
// differs from another one in a few fields (llamas.go). Passes come after it, and it knows none of them.
package importers
