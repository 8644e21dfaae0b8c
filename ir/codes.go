package ir

import "amkc/ir/diag"

// Codes of malformed programs. They are validation codes: a program that cannot be read is a program that is rejected.
var (
	CodeText = diag.New("AMK3001", "program text cannot be parsed", `
The native text form (.amk) has one entity a line. The message says what was found at that line and column, and what
would be accepted there. docs/ir.md has the grammar.`)
	CodeJSON = diag.New("AMK3002", "program JSON cannot be parsed", `
The native JSON form is an object with "ir_version" 1.x. The message names the field and what would be accepted.`)
	CodeVersion = diag.New("AMK3003", "program of a foreign major version", `
The reader accepts its own major version only: a newer one may mean things that this amkc does not know. Recompile the
model, or use the amkc that wrote the file.`)
	CodeName = diag.New("AMK3010", "name defined twice, or not at all", `
Every buffer, page, counter and task has one name. A family such as L{i}.x defines one name for each index. A stage may
refer to names that exist for every iteration of its loop; {i+1} in the last iteration is one past the loop's range.`)
	CodeOperands = diag.New("AMK3011", "op with wrong operands or parameters", `
Each opcode takes a fixed range of operand counts and a fixed set of parameters. amkc's ir/opcode.go is the registry.`)
	CodeShape = diag.New("AMK3012", "malformed buffer, view, span or interval", `
Shapes have one to four positive dimensions; a view names as many ranges as its buffer has dimensions; a variant covers a
non-empty interval of positions; a distribution has a positive extent, grain and number of SMs.`)
	CodeSize = diag.New("AMK3013", "program larger than the stated budget", `
A program is unrolled before it is proved. Unrolling stops at 4,000,000 tasks and 1,000,000 buffers: what cannot be
looked at in full is refused, never checked less.`)
)
