// Package importers builds the operator graph of a checkpoint. Import reads config.json with the importer of its
// family, refuses what is not modelled, and accounts for every tensor of the files. A family has a separate file,
// unless it differs from another one in a few fields (llamas.go). The package does not depend on passes.
package importers
