package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const margin = 12 // around a terminal

// OpenTerminal opens a page with a terminal that shows the output of a program: xterm.js, from the folder that
// AMKC_XTERM names. It also returns the lines of text on it.
func OpenTerminal(t *testing.T, written string, columns int) (b *Browser, lines string) {
	folder := os.Getenv("AMKC_XTERM")
	if folder == "" {
		t.Skip("AMKC_XTERM names no folder of xterm.js; make browser gets it, and runs this")
	}
	b = Open(t, "about:blank")
	for _, file := range []string{"lib/xterm.js", "css/xterm.css"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		if filepath.Ext(file) == ".js" {
			b.Call("Runtime.evaluate", map[string]any{"expression": string(text)})
			continue
		}
		b.Value(fmt.Sprintf(`document.head.append(Object.assign(document.createElement("style"), {textContent: %s}))`,
			quoted(t, string(text))))
	}
	lines = b.Value(fmt.Sprintf(`(async () => {
		const theme = {background: "#16181d", foreground: "#d7dae0", cursor: "#d7dae0", green: "#8fd694"};
		const options = {cols: %d, rows: 200, fontSize: 13, lineHeight: 1.07,
			fontFamily: '"DejaVu Sans Mono", monospace', theme, cursorInactiveStyle: "none"};
		globalThis.terminal = new Terminal(options);
		document.body.style = "margin: %dpx; width: fit-content; background: " + theme.background;
		terminal.open(document.body.appendChild(document.createElement("div")));
		await new Promise(done => terminal.write(%s, done));
		const buffer = terminal.buffer.active, lines = [];
		for (let i = 0; i < buffer.length; i++) lines.push(buffer.getLine(i).translateToString(true));
		while (lines.at(-1) === "") lines.pop();
		terminal.resize(terminal.cols, lines.length);
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		return lines.join("\n");
	})()`, columns, margin, quoted(t, written)))
	b.Screen(8*columns+2*margin, 16*(strings.Count(lines, "\n")+1)+2*margin, "dark") // whichever the font
	return b, lines
}

// quoted is a text as JavaScript writes it.
func quoted(t *testing.T, text string) string {
	out, err := json.Marshal(text)
	require.NoError(t, err)
	return string(out)
}
