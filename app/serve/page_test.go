package serve

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/browser"
)

var update = flag.Bool("update", false, "take the pictures of the page again")

// A visitor sits at the page of a server whose model answers as a test says.
type visitor struct {
	*browser.Browser
	t      *testing.T
	engine *scripted
	pace   atomic.Int64 // nanoseconds from one token to the next; negative: there is none
	mu     sync.Mutex
	bodies []string // of the requests for answers
}

// opens opens the page. says is the answer to a prompt, of which "..." is never complete; change may change the server.
func opens(t *testing.T, says func(prompt string) string, change func(*Config)) *visitor {
	r := &visitor{t: t}
	r.pace.Store(int64(time.Millisecond))
	var mu sync.Mutex
	answers := map[string][]int{}
	r.engine = newScripted(func(prompt, out []int) int {
		mu.Lock()
		defer mu.Unlock()
		text := words().Decode(prompt, false)
		ids, ok := answers[text]
		if !ok {
			answer, endless := strings.CutSuffix(says(text), "...")
			if ids = idsOf(t, answer); !endless {
				ids = append(ids, eos)
			}
			answers[text] = ids
		}
		if len(out) < len(ids) {
			return ids[len(out)]
		}
		return idsOf(t, "\n")[0]
	})
	r.engine.gate = make(chan struct{})
	go func() { // tokens come one after the other
		for t.Context().Err() == nil {
			for r.pace.Load() < 0 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			select {
			case r.engine.gate <- struct{}{}:
				time.Sleep(time.Duration(r.pace.Load()))
			case <-t.Context().Done():
			}
		}
	}()
	r.engine.limits.MaxSeq = 4096
	s := newTest(r.engine, change).run(t)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost {
			body, _ := io.ReadAll(request.Body)
			request.Body = io.NopCloser(bytes.NewReader(body))
			r.mu.Lock()
			r.bodies = append(r.bodies, string(body))
			r.mu.Unlock()
		}
		s.Handler().ServeHTTP(w, request)
	}))
	t.Cleanup(h.Close)
	r.Browser = browser.Open(t, h.URL)
	return r
}

func always(answer string) func(string) string { return func(string) string { return answer } }

// sent is the last request for an answer.
func (r *visitor) sent() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[len(r.bodies)-1]
}

// writes writes a text as from a keyboard, and presses Enter.
func (r *visitor) writes(text string) {
	r.t.Helper()
	r.Value(`$("text").focus()`)
	r.Types(text)
	r.Presses("Enter")
}

// asks writes a text and waits until the answer is complete.
func (r *visitor) asks(text string) {
	r.t.Helper()
	r.writes(text)
	r.Becomes(`running`, "null")
}

// sets sets a field of the settings.
func (r *visitor) sets(field, value string) {
	r.t.Helper()
	r.Value(fmt.Sprintf(`$(%q).value = %q`, field, value))
}

// clicks clicks a button of the last turn.
func (r *visitor) clicks(name string) {
	r.t.Helper()
	r.Value(fmt.Sprintf(`[...document.querySelectorAll("article:last-child [aria-label='%s']")][0].click()`, name))
}

// shows is the text of all elements that a selector finds.
func shows(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.textContent).join("|")`, selector)
}

const (
	messages = ".user"
	answers  = ".answer"
	notice   = "#notice:not([hidden]) span"
	sender   = `$("send").ariaLabel`
)

// What is written is answered as it comes, and a conversation goes on, also after the page is loaded again.
func TestPageInABrowser(t *testing.T) {
	r := opens(t, always("It is."), nil)
	r.pace.Store(int64(20 * time.Millisecond))
	r.Becomes(`document.title`, "m")
	require.Equal(t, "m", r.Value(`$("model").textContent`))
	require.Equal(t, "true", r.Value(`inChat()`))
	require.Contains(t, r.Value(`$("about").textContent`), "4,096 tokens of context")
	r.asks("Is it?")
	require.Equal(t, "Is it?", r.Value(shows(messages)))
	require.Equal(t, "It is.", r.Value(shows(answers)))
	require.Equal(t, "Send", r.Value(sender))
	require.Empty(t, r.Value(`$("text").value`))
	require.Regexp(t, `^first \d+ ms · median [\d.]+ ms per token$`, r.Value(`$("speed").textContent`))
	require.Regexp(t, `^M0 [\d.]+L2 `, r.Value(`$("chart").firstElementChild.getAttribute("d")`))
	n := len(idsOf(t, "It is."))
	require.Regexp(t, `^`+strconv.Itoa(n+1)+` tokens · [\d.]+ per second$`, r.Value(shows("article .actions span")))
	prompt := len(idsOf(t, "<|user|>Is it?<|assistant|>"))
	require.Equal(t, fmt.Sprintf("context %d of 4,096", prompt+n+1), r.Value(`$("context").textContent`))

	r.asks("And now?")
	require.Equal(t, "It is.|It is.", r.Value(shows(answers)))
	require.Contains(t, r.sent(), `"messages":[{"role":"user","content":"Is it?"},`+
		`{"role":"assistant","content":"It is."},{"role":"user","content":"And now?"}]`)
	r.Call("Page.reload", nil)
	r.Becomes(`document.readyState + document.title`, "completem")
	require.Equal(t, "It is.|It is.", r.Value(shows(answers)))
	require.Equal(t, "Is it?|And now?", r.Value(shows(messages)))
	// Enter of an input method chooses a word.
	require.Equal(t, "true", r.Value(`($("text").value = "に", $("text").dispatchEvent(new KeyboardEvent("keydown",
		{key: "Enter", isComposing: true, cancelable: true, bubbles: true})))`))
	require.Equal(t, "null に", r.Value(`running + " " + $("text").value`))
	require.Empty(t, r.Faults)
}

// The mode is that of the model: without a chat template, text is continued. The user can change it.
func TestModesInABrowser(t *testing.T) {
	r := opens(t, always(" x = *1*"), func(c *Config) { c.Chat = nil })
	r.Becomes(`document.title + inChat()`, "mfalse")
	require.Equal(t, "true", r.Value(`document.querySelector("[value=chat]").disabled`))
	require.Contains(t, r.Value(`$("about").textContent`), "no chat template")
	r.asks("def f():")
	require.Contains(t, r.sent(), `"prompt":"def f():","max_tokens":256`)
	require.Equal(t, " x = *1*", r.Value(shows(answers)), "a continued text is not Markdown")
	r.asks("def g():")
	require.Contains(t, r.sent(), `"prompt":"def f(): x = *1*\ndef g():"`)
	r.asks("")
	require.Contains(t, r.sent(), `"prompt":"def f(): x = *1*\ndef g(): x = *1*"`, "an empty message continues")
	require.Empty(t, r.Faults)

	r = opens(t, always("*1*"), nil)
	r.Becomes(`document.title + inChat()`, "mtrue")
	r.Value(`document.querySelector("[value=completion]").click()`)
	r.asks("x")
	require.Contains(t, r.sent(), `"prompt":"x"`)
	r.Value(`document.querySelector("[value=chat]").click()`)
	r.asks("y")
	require.Contains(t, r.sent(), `{"role":"assistant","content":"*1*"},{"role":"user","content":"y"}]`)
	require.Equal(t, "*1*|1", r.Value(shows(answers)))
}

// Settings are sent; those that are empty are not. They are kept when the page is loaded again, and the key is not.
func TestSettingsInABrowser(t *testing.T) {
	r := opens(t, always("Yes."), func(c *Config) {
		c.Chat = format(thinks)
		c.Sampling.Temperature, c.Sampling.TopK, c.Sampling.TopP = 0.7, 1, 0.9
	})
	r.Becomes(`document.title`, "m")
	require.Equal(t, "0.7 0.9", r.Value(`$("temperature").placeholder + " " + $("top_p").placeholder`))
	r.asks("a")
	require.JSONEq(t, `{"model": "m", "stream": true, "stream_options": {"include_usage": true},
		"messages": [{"role": "user", "content": "a"}]}`, r.sent())
	r.Value(`$("open").click()`)
	require.Equal(t, "true", r.Value(`$("settings").open`))
	for field, value := range map[string]string{"system": "Be brief.", "temperature": "0", "top_p": "0.5",
		"max_tokens": "3", "seed": "7", "thinking": "false", "key": "k"} {
		r.sets(field, value)
	}
	r.Presses("Escape")
	r.Becomes(`$("settings").open`, "false")
	r.Value(`$("clear").click()`)
	r.asks("b")
	require.JSONEq(t, `{"model": "m", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0,
		"top_p": 0.5, "max_tokens": 3, "seed": 7, "chat_template_kwargs": {"enable_thinking": false},
		"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "b"}]}`, r.sent())
	r.sets("max_tokens", "2")
	r.asks("c")
	require.Contains(t, r.Value(shows("article:last-child .actions span")), "2 tokens")
	require.Contains(t, r.Value(shows("article:last-child .actions span")), "length limit reached")
	r.Call("Page.reload", nil)
	r.Becomes(`document.readyState + document.title`, "completem")
	require.Equal(t, "Be brief. 0 7 ",
		r.Value(`["system", "temperature", "seed", "key"].map(id => $(id).value).join(" ")`))
	r.Value(`($("theme").value = "dark", $("theme").dispatchEvent(new Event("change", {bubbles: true})))`)
	r.Call("Page.reload", nil)
	r.Becomes(`document.readyState + document.title`, "completem")
	r.Becomes(`getComputedStyle(document.body).backgroundColor`, "rgb(25, 26, 29)")
	require.Empty(t, r.Faults)
}

// What cannot be answered changes nothing: the message is in the field again, and the conversation as it was.
func TestRefusedMessageInABrowser(t *testing.T) {
	r := opens(t, always("Yes."), func(c *Config) { c.Engine.(*scripted).limits.MaxSeq = 64 })
	r.Becomes(`document.title`, "m")
	r.asks("a")
	long := "A long\nstory. " + strings.Repeat("word ", 100)
	r.asks(long)
	require.Contains(t, r.Value(shows(notice)), "64 tokens")
	require.Equal(t, long, r.Value(`$("text").value`))
	require.Equal(t, "a", r.Value(shows(messages)))
	require.Equal(t, "Yes.", r.Value(shows(answers)))
	r.Value(`$("text").value = ""`)
	r.asks("b") // after which the next one is sent
	require.Equal(t, "a|b", r.Value(shows(messages)))
	require.Empty(t, r.Value(shows(notice)))

	r.clicks("Edit the message")
	require.Equal(t, "b", r.Value(`$("text").value`))
	r.Value(`$("text").value = ""`)
	r.asks(long)
	require.Equal(t, "a|b", r.Value(shows(messages)), "an edited message that is refused leaves the conversation")
	require.Equal(t, long, r.Value(`$("text").value`))
	require.Equal(t, "1", r.Value(`edited`), "and it is still being edited")
	r.Presses("Escape")
	r.sets("temperature", "-1")
	r.clicks("Regenerate the answer")
	r.Becomes(`running`, "null")
	require.Contains(t, r.Value(shows(notice)), "temperature")
	require.Equal(t, "Yes.|Yes.", r.Value(shows(answers)), "and so does an answer that is asked for again")
	require.Empty(t, r.Value(`$("text").value`))
	for _, fault := range r.Faults {
		require.Contains(t, fault, "400")
	}
}

// An answer is stopped by a button and by a key, and what has come of it stays. Enter does not stop it, and does not
// lose what was written meanwhile.
func TestStoppedAnswerInABrowser(t *testing.T) {
	r := opens(t, func(prompt string) string {
		if strings.Contains(prompt, "first") {
			return "Once upon..."
		}
		return "..."
	}, nil)
	r.Becomes(`document.title`, "m")
	idle := func(want int) {
		eventually(t, func() bool { running, _ := r.engine.load(); return running == want })
	}
	r.writes("first")
	r.Becomes(`document.querySelector(".answer")?.textContent.trim()`, "Once upon")
	require.Equal(t, "Stop", r.Value(sender))
	require.Equal(t, "The model is writing.", r.Value(`$("status").textContent`))
	require.Equal(t, "true", r.Value(`document.querySelector(".answer").ariaBusy`))
	idle(1)
	r.writes("and then?")
	require.Equal(t, "and then? Stop", r.Value(`$("text").value + " " + `+sender))
	r.Presses("Escape")
	r.Becomes(sender, "Send")
	idle(0)
	require.Equal(t, "Once upon", r.Value(`document.querySelector(".answer").textContent.trim()`))
	require.Contains(t, r.Value(shows("article .actions span")), "stopped")
	require.Equal(t, "and then?", r.Value(`$("text").value`))
	require.Equal(t, "The answer is complete.", r.Value(`$("status").textContent`))
	r.Presses("Enter")
	r.Becomes(sender, "Stop")
	idle(1)
	require.Contains(t, r.sent(), "Once upon")
	r.Becomes(`turns[1].answer !== ""`, "true")
	r.Value(`$("send").click()`)
	r.Becomes(sender, "Send")
	idle(0)
	r.pace.Store(-1)
	r.writes("too slow")
	idle(1)
	r.writes("and later")
	r.Presses("Escape")
	r.Becomes(`running`, "null")
	require.Equal(t, "too slow\nand later", r.Value(`$("text").value`), "a message without an answer is not lost")
	require.Equal(t, "first|and then?", r.Value(shows(messages)))
	require.Empty(t, r.Value(shows(notice)))
	require.Empty(t, r.Faults)
}

// An answer that the server breaks off stays as far as it came, with the reason.
func TestInterruptedAnswerInABrowser(t *testing.T) {
	r := opens(t, always("Once upon a time..."), func(c *Config) {
		steps := 0
		c.Engine.(*scripted).fail = func() error {
			if steps++; steps == 40 {
				return errors.New("a lost device")
			}
			return nil
		}
	})
	r.Becomes(`document.title`, "m")
	r.asks("a")
	require.Equal(t, errInternal.message, r.Value(shows(notice)))
	require.Equal(t, "Once upon a time", strings.TrimSpace(r.Value(shows(answers))))
	require.Contains(t, r.Value(shows("article .actions span")), "interrupted")
	require.Empty(t, r.Value(`$("text").value`))
	require.Empty(t, r.Faults)
}

// A complete answer is not lost to a part of another: what is regenerated and stopped can be undone.
func TestStoppedRegenerationInABrowser(t *testing.T) {
	r := opens(t, func(prompt string) string {
		if strings.Contains(prompt, "briefly") {
			return "Once..."
		}
		return "Complete."
	}, nil)
	r.Becomes(`document.title`, "m")
	r.asks("a")
	r.sets("system", "briefly")
	r.clicks("Regenerate the answer")
	r.Becomes(`document.querySelector(".answer")?.textContent.trim()`, "Once")
	r.Presses("Escape")
	r.Becomes(`running`, "null")
	require.Equal(t, "A part of an answer replaced the one before.", r.Value(shows(notice)))
	r.Value(`$("notice").lastChild.click()`)
	require.Equal(t, "Complete.", r.Value(shows(answers)))
	require.Empty(t, r.Value(shows(notice)))

	// The conversation is kept if the server has another model.
	r.Value(`sessionStorage.amkc = JSON.stringify({...JSON.parse(sessionStorage.amkc), model: "another"})`)
	r.Call("Page.reload", nil)
	r.Becomes(shows(messages), "a")
	require.Equal(t, "Complete.", r.Value(shows(answers)))
	require.Empty(t, r.Faults)
}

// Turns are edited, answered again, deleted, copied and cleared, and what is deleted comes back.
func TestEditingAConversationInABrowser(t *testing.T) {
	var mu sync.Mutex
	r := opens(t, func(prompt string) string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("**%d**", strings.Count(prompt, "user"))
	}, nil)
	r.Becomes(`document.title`, "m")
	for _, text := range []string{"a", "b", "c"} {
		r.asks(text)
	}
	require.Equal(t, "1|2|3", r.Value(shows(answers)))
	require.Equal(t, "false false true",
		r.Value(`[...document.querySelectorAll(".again")].map(b => b.checkVisibility()).join(" ")`))
	r.sets("seed", "5")
	r.clicks("Regenerate the answer")
	r.Becomes(`running`, "null")
	require.Contains(t, r.sent(), `"seed":5`)
	require.Equal(t, "a|b|c", r.Value(shows(messages)))

	const edits = `document.querySelectorAll("[aria-label='Edit the message']")[1].click()`
	r.Types("not sent")
	r.Value(edits)
	require.Equal(t, "b", r.Value(`$("text").value`))
	r.Presses("Escape")
	require.Equal(t, "null", r.Value(`edited`))
	require.Equal(t, "not sent", r.Value(`$("text").value`), "what was written before is there again")
	r.Value(edits)
	r.asks("!")
	require.Equal(t, "not sent", r.Value(`$("text").value`))
	r.Value(`$("text").value = ""`)
	require.Equal(t, "a|b!", r.Value(shows(messages)))
	require.Equal(t, "1|2", r.Value(shows(answers)))

	r.clicks("Delete the message and its answer")
	require.Equal(t, "a", r.Value(shows(messages)))
	r.Value(`$("notice").lastChild.click()`)
	require.Equal(t, "a|b!", r.Value(shows(messages)), "undone")
	r.Value(`$("clear").click()`)
	require.Equal(t, "false", r.Value(`$("empty").hidden`))
	r.Value(`$("notice").lastChild.click()`)
	require.Equal(t, "a|b!", r.Value(shows(messages)), "undone")

	r.Call("Browser.grantPermissions", map[string]any{"permissions": []string{"clipboardReadWrite"}})
	r.clicks("Copy the answer")
	r.Becomes(`navigator.clipboard.readText()`, "**2**")
	r.clicks("Copy the message")
	r.Becomes(`navigator.clipboard.readText()`, "b!")
	r.Becomes(`document.querySelector("[aria-label='Copy the message']").textContent`, "Copy")
	r.Value(`navigator.clipboard.writeText = () => Promise.reject(), document.execCommand = () => false`)
	r.clicks("Copy the message")
	r.Becomes(`document.querySelector("article:last-child [aria-label='Copy the message']").textContent`, "Not copied")
	require.Empty(t, r.Faults)
}

// A thought is folded, and goes back to the model with its answer.
func TestThoughtsInABrowser(t *testing.T) {
	r := opens(t, always("<think>As *so*.</think>It is."), func(c *Config) { c.Chat = format(thinks) })
	r.Becomes(`document.title`, "m")
	r.asks("Is it?")
	require.Equal(t, "It is.", r.Value(shows(answers)))
	require.Equal(t, "As so.", r.Value(shows("details.thought > div")))
	require.Equal(t, "false", r.Value(`document.querySelector("details").open`))
	require.Regexp(t, `^Thought for \d+\.\d s$`, r.Value(shows("summary")))
	r.asks("And?")
	require.Contains(t, r.sent(), `{"role":"assistant","content":"It is.","reasoning_content":"As *so*."}`)
	require.Empty(t, r.Faults)
}

// While a long prompt is read, the page says how far that is, until the answer begins.
func TestLongPromptInABrowser(t *testing.T) {
	r := opens(t, always("Read."), nil)
	r.Becomes(`document.title`, "m")
	r.pace.Store(int64(700 * time.Millisecond))
	r.Value(fmt.Sprintf(`$("text").value = %q`, strings.Repeat("a line\n", 100)))
	r.writes("")
	const note, says = `document.querySelector("article:last-child .answer + .actions span")`,
		`/^\d+ of \d+ tokens of the prompt are read$/.test(`
	r.Becomes(says+note+`.textContent)`, "true")
	require.Equal(t, "visible", r.Value(`getComputedStyle(`+note+`).visibility`))
	r.pace.Store(int64(time.Millisecond))
	r.Becomes(`running`, "null")
	require.Equal(t, "Read.", r.Value(shows(answers)))
	require.Contains(t, r.Value(note+`.textContent`), "tokens")
	require.Equal(t, "false", r.Value(says+note+`.textContent)`))
	require.Empty(t, r.Faults)
}

// A reader who has scrolled up stays where he is while an answer comes, and goes back by a button.
func TestScrollingInABrowser(t *testing.T) {
	r := opens(t, always(strings.Repeat("A line.\n\n", 40)+"..."), nil)
	r.Becomes(`document.title`, "m")
	r.writes("a")
	const top = `$("scroll").scrollTop`
	r.Becomes(`$("scroll").scrollHeight > 2 * $("scroll").clientHeight`, "true")
	require.NotEqual(t, "0", r.Value(top), "the page follows the text")
	r.Value(`$("scroll").scrollTop = 10`)
	height := r.Value(`$("scroll").scrollHeight`)
	r.Becomes(`$("scroll").scrollHeight > `+height, "true")
	require.Equal(t, "10", r.Value(top))
	require.Equal(t, "false", r.Value(`$("latest").hidden`))
	r.Value(`$("latest").click()`)
	r.Becomes(`atBottom() + " " + $("latest").hidden`, "true true")
	r.Presses("Escape")
	r.Becomes(`running`, "null")
	require.Empty(t, r.Faults)
}

// With an API key the page says what is missing, keeps the message, and goes on when it has the key.
func TestKeyInABrowser(t *testing.T) {
	r := opens(t, always("Yes."), func(c *Config) { c.APIKey = "secret" })
	r.Becomes(shows(notice), errKey.message)
	require.Equal(t, "amkc serve", r.Value(`document.title`))
	r.writes("a")
	r.Becomes(`$("text").value + running`, "anull")
	require.Equal(t, errKey.message, r.Value(shows(notice)))
	r.Value(`$("notice").lastChild.click()`)
	require.Equal(t, "key", r.Value(`document.activeElement.id`))
	r.Types("secret")
	r.Presses("Enter")
	r.Becomes(`document.title`, "m")
	r.asks("")
	require.Equal(t, "Yes.", r.Value(shows(answers)))
	r.Call("Page.reload", nil)
	r.Becomes(shows(notice), errKey.message)
	require.Empty(t, r.Value(shows(answers)))
	r.sets("key", "secret")
	r.asks("b")
	require.Equal(t, "a|b", r.Value(shows(messages)), "the conversation was kept meanwhile")
	for _, fault := range r.Faults {
		require.Contains(t, fault, "401")
	}
}

// Everything has a name and can be reached, texts can be read in light and in dark, and nothing is wider than a phone.
func TestAccessibilityInABrowser(t *testing.T) {
	r := opens(t, always("A `code`.\n\n```go\n"+strings.Repeat("wide ", 60)+"\n```\n\n|a|b|\n|-|-|\n|"+
		strings.Repeat("x", 90)+"|2|\n\n"+strings.Repeat("y", 200)), nil)
	r.Becomes(`document.title`, "m")
	r.asks(strings.Repeat("z", 200))
	names := r.Names()
	require.Contains(t, names, "textbox Message")
	require.Contains(t, names, "button Send")
	require.Contains(t, names, "log Conversation")
	require.Contains(t, names, "radio Chat")
	r.Value(`$("open").click()`)
	settings := r.Names()
	require.Contains(t, settings, "dialog Settings")
	require.Contains(t, settings, "spinbutton Temperature")
	for _, name := range append(names, settings...) {
		require.Regexp(t, `^\w+ \S`, name)
	}
	r.Presses("Escape")
	// Contrast as the guidelines for accessibility compute it: 4.5 is enough for any text.
	const contrast = `(() => {
		const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
		const luminance = colour => {
			canvas.fillStyle = colour;
			canvas.fillRect(0, 0, 1, 1);
			const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(x => x / 255)
				.map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
			return .2126 * r + .7152 * g + .0722 * b;
		};
		const backdrop = e => {
			const own = getComputedStyle(e).backgroundColor;
			return own === "rgba(0, 0, 0, 0)" ? backdrop(e.parentElement) : own;
		};
		return Math.min(...["h1", "#open", ".user", ".answer p", ".answer code", ".code span", "th", "td",
			".actions span", "#speed", "#context", "#send", "#mode span"].map(selector => {
			const e = document.querySelector(selector);
			const [less, more] = [getComputedStyle(e).color, backdrop(e)].map(luminance).sort((a, b) => a - b);
			return (more + .05) / (less + .05);
		}));
	})()`
	for _, scheme := range []string{"light", "dark"} {
		r.Screen(360, 640, scheme)
		least, err := strconv.ParseFloat(r.Value(contrast), 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, least, 4.5, scheme)
		require.Equal(t, "360 360", r.Value(`document.documentElement.scrollWidth + " " + $("scroll").scrollWidth`))
		require.Equal(t, "true true", r.Value(`["pre", ".wide"].map(s => document.querySelector(s)).map(e =>
			e.scrollWidth > e.clientWidth).join(" ")`), "what is too wide scrolls")
	}
	require.Empty(t, r.Faults)
}

// The pictures in the documentation are of the page as it is: its texts are compared, but for times.
func TestPicturesInABrowser(t *testing.T) {
	const answer = `A binary search halves the range at each step, so it takes **O(log n)** comparisons:

` + "```python" + `
def find(items, wanted):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
` + "```" + `

| items | comparisons |
|------:|------------:|
| 1,000 | 10 |
| 1,000,000 | 20 |

The list has to be *sorted*. In Python, ` + "`bisect_left`" + ` of the module
[bisect](https://docs.python.org/3/library/bisect.html) is this function.`
	r := opens(t, func(prompt string) string {
		if strings.Contains(prompt, "twice") {
			return "<think>They want the first index; equal items need low to stay.</think>" +
				"It returns the **first** of them:\n\n" +
				"1. while `items[middle] < wanted` is false, `high` moves down,\n" +
				"2. so the search goes on to the left of an equal item."
		}
		return answer
	}, func(c *Config) {
		c.Model, c.Chat = "example-model", format(thinks)
		c.Engine.(*scripted).limits.MaxSeq = 8192
	})
	r.Becomes(`document.title`, "example-model")
	digits := regexp.MustCompile(`[\d.]+ (ms|per second|s\b)`)
	vary := func(text string) string { return digits.ReplaceAllString(text, "# $1") }
	shown := func() string {
		r.Value(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
		return r.Value(`document.body.innerText`)
	}
	r.pace.Store(int64(10 * time.Millisecond))
	r.Screen(1000, 800, "light")
	r.asks("How does a binary search work? Show me one in Python.")
	r.Value(`$("text").blur()`)
	r.Picture("../../docs/img/serve-page.png", *update, shown(), vary)
	r.Screen(420, 800, "dark")
	r.asks("And if the item occurs twice?")
	r.Value(`$("text").blur()`)
	r.Picture("../../docs/img/serve-page-narrow.png", *update, shown(), vary)
	require.Empty(t, r.Faults)
}

// marked is a release as it was published, whose digest the documentation has.
func TestMarkedIsAsPublished(t *testing.T) {
	text, err := os.ReadFile("../../docs/dependencies.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("%x", sha256.Sum256([]byte(pageFile("marked/marked.js")))))
}

// The page is one file that loads nothing from elsewhere, and its policy names what it runs.
func TestPage(t *testing.T) {
	s := serve(t, says(t, "x"))
	status, header, body := s.send(t, http.MethodGet, "/", "", nil)
	require.Equal(t, 200, status)
	require.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
	require.Regexp(t, `^default-src 'none'; connect-src 'self'; script-src( 'sha256-[^']{44}'){3}; `+
		`style-src 'sha256-[^']{44}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; `+
		`require-trusted-types-for 'script'; trusted-types 'none'$`, header.Get("Content-Security-Policy"))
	require.Equal(t, 3, strings.Count(body, "<script>"))
	require.Equal(t, 1, strings.Count(body, "<style>"))
	for _, banned := range []string{"innerHTML", "eval(", "onclick"} {
		require.False(t, strings.Contains(body, banned), banned)
	}
	rest := body
	for _, file := range []string{"page.css", "marked/marked.js", "markdown.js", "page.js"} {
		before, after, found := strings.Cut(rest, ">\n"+pageFile(file)+"</")
		require.True(t, found, file)
		if rest = before + after; file == "marked/marked.js" {
			continue
		}
		own := strings.Replace(pageFile(file), `["http:", "https:", "mailto:"]`, "", 1)
		for _, banned := range []string{"http:", "https:", "src=", "href=", "style=", "url("} {
			require.NotContains(t, own, banned, file)
		}
	}
	for _, banned := range []string{"http:", "https:", "src=", "href=", "style=", "<script "} {
		require.NotContains(t, rest, banned)
	}
	status, _, body = s.send(t, http.MethodHead, "/", "", nil)
	require.Equal(t, 200, status)
	require.Empty(t, body)
}
