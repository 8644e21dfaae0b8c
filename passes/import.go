package passes

import "amkc/importers"

// Import is the pass that reads a checkpoint: it chooses the model family by model_type and builds the graph.
var Import = Pass{
	Name: "import",
	Doc:  "read config and tensors, refuse what is not modelled, build the operator graph",
	Run:  runImport,
}

func runImport(s *State) error {
	m, err := importers.Import(s.Source)
	if err != nil {
		return err
	}
	s.Graph, s.Consumed, s.Matrices = m.Graph, m.Consumed, m.Matrices
	s.Diags.Add(m.Warnings...)
	return nil
}
