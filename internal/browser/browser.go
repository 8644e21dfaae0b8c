// Package browser gives tests a browser, and pictures of what it shows.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Browser is Chromium without a window, which is told what to do through a pipe: requests of its DevTools protocol in
// JSON, with a zero byte after each.
type Browser struct {
	Faults []string // exceptions of the page, and requests and operations that its policy blocked

	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
}

// Open opens a page, for the duration of a test. AMKC_BROWSER names the program.
func Open(t *testing.T, url string) *Browser {
	program := os.Getenv("AMKC_BROWSER")
	if program == "" {
		t.Skip("AMKC_BROWSER names no Chromium; make browser gets one, and runs this")
	}
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	ctx, kill := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--force-color-profile=srgb",
		"--font-render-hinting=none", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	c.ExtraFiles = []*os.File{in, out} // 3 and 4, as it wants them
	require.NoError(t, c.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	b := &Browser{t: t, to: to, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		to.Close() // with which it ends
		time.AfterFunc(10*time.Second, kill)
		_ = c.Wait()
		kill()
		from.Close()
	})
	var target struct{ TargetID string }
	require.NoError(t, json.Unmarshal(b.Call("Target.createTarget", map[string]any{"url": "about:blank"}), &target))
	var attached struct{ SessionID string }
	require.NoError(t, json.Unmarshal(b.Call("Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}), &attached))
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Page"} {
		b.Call(domain+".enable", nil)
	}
	b.Call("Page.navigate", map[string]any{"url": url})
	b.Becomes("document.readyState", "complete")
	return b
}

// Call sends a request of the DevTools protocol and waits for its result.
func (b *Browser) Call(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		text, err := b.from.ReadBytes(0)
		require.NoError(b.t, err, method)
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &m), string(text))
		switch {
		case m.Method == "Runtime.exceptionThrown",
			m.Method == "Log.entryAdded" && !strings.Contains(string(m.Params), `"level":"info"`):
			b.Faults = append(b.Faults, string(m.Params))
		case m.ID == b.last:
			require.Empty(b.t, string(m.Error), method)
			return m.Result
		}
	}
}

// Value evaluates an expression in the page, waits if it is a promise, and returns it as a string.
func (b *Browser) Value(expression string) string {
	b.t.Helper()
	var got struct {
		Result           struct{ Value string }
		ExceptionDetails json.RawMessage
	}
	answer := b.Call("Runtime.evaluate", map[string]any{"awaitPromise": true, "userGesture": true,
		"expression": "(async () => String(await (" + expression + ")))()"})
	require.NoError(b.t, json.Unmarshal(answer, &got))
	require.Empty(b.t, string(got.ExceptionDetails), expression)
	return got.Result.Value
}

// Becomes waits until an expression has a value.
func (b *Browser) Becomes(expression, want string) {
	b.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := b.Value(expression)
		if got == want {
			return
		}
		if time.Now().After(until) {
			require.Equal(b.t, want, got, expression)
		}
	}
}

// Types inserts a text into the element that has the focus.
func (b *Browser) Types(text string) {
	b.t.Helper()
	b.Call("Input.insertText", map[string]any{"text": text})
}

// keys are the codes of keys that are pressed.
var keys = map[string]int{"Enter": 13, "Escape": 27, "Tab": 9}

// Presses presses a key, with shift if the name begins with "Shift+".
func (b *Browser) Presses(key string) {
	b.t.Helper()
	name, shift := strings.CutPrefix(key, "Shift+")
	require.Contains(b.t, keys, name)
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": keys[name]}
		if name == "Enter" {
			event["text"] = "\r"
		}
		if shift {
			event["modifiers"] = 8
		}
		b.Call("Input.dispatchKeyEvent", event)
	}
}

// Screen sets the size of the window in CSS pixels, at two pixels of the picture for each, and the preferred color
// scheme: "light" or "dark".
func (b *Browser) Screen(width, height int, scheme string) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 2, "mobile": false})
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}})
}

// Names returns the role and the accessible name, which a screen reader announces, of each element that a user can
// operate.
func (b *Browser) Names() []string {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value string }
		}
	}
	require.NoError(b.t, json.Unmarshal(b.Call("Accessibility.getFullAXTree", nil), &tree))
	var names []string
	for _, node := range tree.Nodes {
		switch node.Role.Value {
		case "button", "textbox", "spinbutton", "combobox", "radio", "checkbox", "link", "dialog", "log", "img":
			if !node.Ignored {
				names = append(names, fmt.Sprintf("%s %s", node.Role.Value, node.Name.Value))
			}
		}
	}
	return names
}
