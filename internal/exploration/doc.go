// Package exploration runs builds of all forms on the CPU, under schedules of package explore. The builds are those of
// builds.txt, of small models, in which each two properties that a build may have occur together in one of them: where
// a fault takes two, one of the builds has it. They cost seconds each, and most of these are the compiler's.
//
// It is tests alone, and `make explore`: nothing imports it.
package exploration
