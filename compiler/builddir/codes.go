package builddir

import "amkc/ir/diag"

var (
	CodeUnusable = diag.New("AMK5101", "the output directory cannot be used", `
A build is written to a directory that does not exist yet, is empty, or holds an earlier build of amkc (it has an
amkc.manifest.json). Anything else may be somebody's work and is left alone: name another directory, or move its files
away.`)

	CodeWrite = diag.New("AMK5102", "the build cannot be written", `
The files of a build are written to .amkc-partial in the output directory, and put in their places when all are there.
When writing fails (disk full, no permission) they are removed, and an earlier build stays as it was. When putting
them in place fails, the message says so: the same command once more does the rest.`)

	CodeInTheWay = diag.New("AMK5120", "a file of yours has a name that the build needs", `
The output directory holds an earlier build and a file or a directory that is not the build's, under a name that
the new build needs: amkc replaces and removes only what its manifest lists. Nothing was written. Move the file
elsewhere, compile into another directory, or, if it is the launcher's name, call the model something else with
--name.`)

	CodeBusy = diag.New("AMK5121", "another amkc is writing the same", `
Two runs cannot write to the same directory or file. Wait until the other one has ended, or name another output. A run
that was killed is not in the way: its lock ends with it.`)

	CodeLeftover = diag.New("AMK5122", "an earlier run was interrupted", `
A run that wrote to the same place was killed before it had finished. What it left is dealt with before
anything else is done: files that were not complete are removed, and a build that was complete is put in its place.
Your own files in the directory are where they were.`)

	CodeKept = diag.New("AMK5124", "a file of yours was kept under another name", `
The output directory held a file that an earlier run of amkc had written and that was edited since, or a file of yours
that appeared while amkc was working. The new build has a file of that name. Your version is next to it as NAME.edited,
or NAME.edited.2 and so on where that was taken; amkc never removes it.`)
)
