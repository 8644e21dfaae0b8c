// Package builddir writes a build into a directory that may contain an earlier build and files of the user, with a
// protocol that loses neither if the process is killed at any point.
//
// Everything that is not in place yet is in DIR/.amkc-partial:
//
//	lock          exists, and is locked, while a process writes to DIR
//	new/          the build while it is being made
//	ready/        the build once it is complete
//	earlier.json  the manifest of the earlier build, from when its files begin to be replaced
//
// The steps are
//
//  1. take the lock. Finish or remove what a process that was killed has left (see 7)
//  2. refuse names that are files of the user's
//  3. write all files of the build into new/, the manifest last
//  4. rename new/ to ready/: from here on the build will be put in place, by this run or the next one
//  5. move the manifest to earlier.json, so that DIR is not a build while it holds files of two
//  6. remove the files of the earlier build that the new one lacks; rename those in ready/ to their places, the
//     manifest last; remove .amkc-partial
//  7. a run that finds ready/ does 5 and 6 again, where each step looks at what there is: a file that is in ready/ is
//     not in its place yet. A run that finds no ready/ removes what is in .amkc-partial
//
// Invariants:
//
//   - A file that the manifest of the earlier build does not list is never removed, renamed or written to. A listed
//     file that was edited is kept as NAME.edited, and so is one that has appeared since step 2.
//   - DIR has a manifest only while it holds all files of one build: of the earlier one up to step 5, of the new one
//     from the end of step 6.
//   - DIR itself is neither renamed nor replaced, and keeps its owner and permissions.
//   - Two processes do not write to the same directory: the second is refused, or waits.
//
// This protects against killed processes. After a power failure a file may be damaged, which amkc verify detects. A
// damaged manifest in .amkc-partial is an error, because only the manifest lists the files of the build.
//
// The package imports codegen for the manifest, ir/diag, and runtime/host, infile and outfile, and must not import any
// other package of amkc.
package builddir
