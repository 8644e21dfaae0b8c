package agent

import "amkc/ir/diag"

var (
	codeRoot = diag.New("AMK6201", "the root of amkc mcp cannot be used", `
Everything that a tool of amkc mcp may name lies in one directory, --root, or the one that the server was started in. It
has to be a directory that can be read, and the key that verdicts are signed with must not lie in it.`)

	codeOutside = diag.New("AMK6202", "a path leads out of the root", `
Tools of amkc mcp take paths in the root of the server: relative to it, or absolute and below it. A path with .. that
leaves it is refused, and so are a link that leads out of it, and a directory with such a link in it. Copy what is
needed into the root; a model of a hub's cache, whose files are links, as files.`)

	codeArgument = diag.New("AMK6203", "an argument of a tool cannot be used", `
The message names the argument of the tool and says what would be accepted. The schema of a tool lists its arguments.`)

	codeProtocol = diag.New("AMK6205", "a client does not speak the Model Context Protocol", `
amkc mcp is started by a client of the protocol, which talks to it on stdin and stdout, a JSON message a line. It is of
no use in a terminal: docs/agents.md shows how a client is told of it.`)

	codeVerb = diag.New("AMK6204", "a verb gave no result", `
The process that a tool of amkc mcp runs has crashed, was killed, or printed something else than a result. The message
has the last thing that it said. Builds and campaigns are whole, as after any kill.`)
)
