// Package names tests that names are for people only. Its tests rename everything in a program, and
// ask the validator, the cost model, the reference VM and codegen again. It has tests only.
package names
