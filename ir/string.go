package ir

// PrintStage returns a stage as the text form has it, its ops and tasks included.
func PrintStage(s *Stage) string {
	var t printer
	t.stage(s)
	return string(t.b)
}

// PrintOp returns an op as the text form has it, without indentation.
func PrintOp(o *Op) string {
	var t printer
	t.op(o)
	return string(t.b[2 : len(t.b)-1])
}

// String returns the parameter as the text form has it.
func (p Param) String() string { return p.Key + "=" + p.value() }
