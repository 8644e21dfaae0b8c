// Package names holds the compiler to what names are: for people. Its tests call everything in a program otherwise, and
// ask the validator, the cost model, the reference VM and codegen again. It has tests only.
package names
