package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A browser is Chromium without a window, which is told what to do through a pipe: requests of its DevTools protocol in
// JSON, with a zero byte after each.
type browser struct {
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
	faults  []string // exceptions of the page, and what it was kept from
}

// openBrowser opens a page. AMKC_BROWSER names the program.
func openBrowser(t *testing.T, url string) *browser {
	program := os.Getenv("AMKC_BROWSER")
	if program == "" {
		t.Skip("AMKC_BROWSER names no Chromium; make browser gets one, and runs this")
	}
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	ctx, kill := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	c.ExtraFiles = []*os.File{in, out} // 3 and 4, as it wants them
	require.NoError(t, c.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	b := &browser{to: to, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		to.Close() // with which it ends
		time.AfterFunc(10*time.Second, kill)
		_ = c.Wait()
		kill()
		from.Close()
	})
	var target struct{ TargetID string }
	require.NoError(t, json.Unmarshal(b.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}), &target))
	var attached struct{ SessionID string }
	require.NoError(t, json.Unmarshal(b.call(t, "Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}), &attached))
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Page"} {
		b.call(t, domain+".enable", nil)
	}
	b.call(t, "Page.navigate", map[string]any{"url": url})
	return b
}

// call asks for something and waits for the answer.
func (b *browser) call(t *testing.T, method string, params map[string]any) json.RawMessage {
	t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	require.NoError(t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(t, err)
	for {
		text, err := b.from.ReadBytes(0)
		require.NoError(t, err, method)
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text[:len(text)-1], &m), string(text))
		switch {
		case m.Method == "Runtime.exceptionThrown",
			m.Method == "Log.entryAdded" && !strings.Contains(string(m.Params), `"level":"info"`):
			b.faults = append(b.faults, string(m.Params))
		case m.ID == b.last:
			require.Empty(t, string(m.Error), method)
			return m.Result
		}
	}
}

// value is that of an expression of the page, which is a string.
func (b *browser) value(t *testing.T, expression string) string {
	t.Helper()
	var got struct{ Result struct{ Value string } }
	answer := b.call(t, "Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")"})
	require.NoError(t, json.Unmarshal(answer, &got))
	return got.Result.Value
}

// becomes waits until an expression has a value.
func (b *browser) becomes(t *testing.T, expression, want string) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := b.value(t, expression)
		if got == want {
			return
		}
		if time.Now().After(until) {
			require.Equal(t, want, got, expression)
		}
	}
}

// writes writes a text as from a keyboard, and presses Enter.
func (b *browser) writes(t *testing.T, text string) {
	t.Helper()
	b.value(t, `$("text").focus()`)
	b.call(t, "Input.insertText", map[string]any{"text": text})
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call(t, "Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter",
			"windowsVirtualKeyCode": 13, "text": "\r"})
	}
}

// saidOf is what the page has of a kind: of the user, of the model, thoughts, errors.
func saidOf(kind string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".said.%s")].map(p => p.textContent).join("|")`, kind)
}

// A page in a real browser: what is written is answered as it comes, a conversation goes on, markup of a model is text,
// an answer can be stopped, and nothing goes wrong unseen.
func TestPageInABrowser(t *testing.T) {
	const answer = `So <b>it</b> is, <img src=x onerror="document.title='bad'">.`
	first := append(idsOf(t, answer), eos)
	var mu sync.Mutex
	var seen []string
	e := newScripted(func(prompt, out []int) int {
		if len(out) == 0 {
			mu.Lock()
			seen = append(seen, words().Decode(prompt, false))
			mu.Unlock()
		}
		if strings.Contains(words().Decode(prompt, false), "endless") {
			return 300
		}
		return first[min(len(out), len(first)-1)]
	})
	e.limits.MaxSeq = 1 << 20
	e.gate = make(chan struct{})
	go func() { // tokens come one after the other
		for t.Context().Err() == nil {
			select {
			case e.gate <- struct{}{}:
				time.Sleep(5 * time.Millisecond)
			case <-t.Context().Done():
			}
		}
	}()
	s := serve(t, e)
	b := openBrowser(t, s.url)
	b.becomes(t, `document.readyState + document.title`, "completem")
	require.Equal(t, "m", b.value(t, `$("model").textContent`))

	b.writes(t, "Is it?")
	b.becomes(t, saidOf("model"), answer)
	require.Equal(t, "Is it?", b.value(t, saidOf("user")))
	b.becomes(t, `$("send").textContent + $("text").value`, "Send")
	require.Regexp(t, `^first \d+ ms · median [\d.]+ ms per token · .* per second · \d+ pieces$`,
		b.value(t, `$("line").textContent`))
	require.Regexp(t, `^M0 [\d.]+L2 `, b.value(t, `$("chart").firstElementChild.getAttribute("d")`))
	require.Equal(t, "m", b.value(t, "document.title"), "markup of the model has no effect")

	b.writes(t, "And now?")
	b.becomes(t, saidOf("model"), answer+"|"+answer)
	mu.Lock()
	require.Contains(t, seen[1], "Is it?")
	require.Contains(t, seen[1], answer)
	require.True(t, strings.HasSuffix(seen[1], "<|user|>And now?<|assistant|>"), seen[1])
	mu.Unlock()

	b.value(t, `$("clear").click()`)
	require.Empty(t, b.value(t, saidOf("model")))
	b.value(t, `$("mode").value = "text"`)
	b.writes(t, "def endless")
	b.becomes(t, `$("send").textContent`, "Stop")
	eventually(t, func() bool { running, _ := e.load(); return running == 1 })
	b.value(t, `$("mode").value = "chat"`)
	b.writes(t, "endless") // while an answer comes, which that stops
	b.becomes(t, `$("send").textContent`, "Send")
	eventually(t, func() bool { running, _ := e.load(); return running == 0 })
	b.writes(t, "")
	b.becomes(t, `$("send").textContent`, "Stop") // now the text that was not sent is
	b.value(t, `$("send").click()`)
	b.becomes(t, `$("send").textContent`, "Send")
	require.Empty(t, b.value(t, saidOf("error")))
	require.Empty(t, b.faults)
}

// With an API key the page says what is missing, and goes on when it has the key.
func TestPageWithAKeyInABrowser(t *testing.T) {
	s := newTest(says(t, "Yes."), func(c *Config) { c.APIKey = "secret" }).start(t)
	b := openBrowser(t, s.url)
	b.becomes(t, `document.readyState + document.title`, "completeamkc serve")
	b.writes(t, "a")
	b.becomes(t, saidOf("error"), errKey.message)
	b.value(t, `$("key").value = "secret"`)
	b.writes(t, "b")
	b.becomes(t, saidOf("model"), "Yes.")
	require.Equal(t, "m", b.value(t, `document.title`))
	for _, fault := range b.faults {
		require.Contains(t, fault, "401")
	}
}
