package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Markdown is shown as elements of a few kinds, as HTML would be if markup of the model were not text.
func TestMarkdownInABrowser(t *testing.T) {
	r := opens(t, always("x"), nil)
	r.Becomes(`document.title`, "m")
	// What an element shows, without the parts that are the same around all of a kind.
	r.Value(`globalThis.shown = text => {
		const parent = element("div");
		renderer(parent)(text);
		for (const e of parent.querySelectorAll("[style='']")) e.removeAttribute("style");
		return parent.innerHTML.replaceAll(/<div class="block">(.*?)<\/div>(?=<div class="block">|$)/gs, "$1")
			.replaceAll(' target="_blank" rel="noopener noreferrer"', "").replaceAll(/ title="[^"]*"/g, "");
	}`)
	for text, want := range map[string]string{
		"# One\n\n###### Six":   "<h2>One</h2><h6>Six</h6>",
		"a *b* **c** ~~d~~ `e`": "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></p>",
		"snake_case_name 2*3*4": "<p>snake_case_name 2<em>3</em>4</p>",
		"- a\n- b\n  1. c": `<ul><li><span>a</span></li><li><span>b</span>` +
			`<ol start="1"><li><span>c</span></li></ol></li></ul>`,
		"3. c\n\n4. d": `<ol start="3"><li><p>c</p></li><li><p>d</p></li></ol>`,
		"- [x] a": `<ul><li><input type="checkbox" disabled="" aria-label="done">` +
			`<span>a</span></li></ul>`,
		"> a\n> b": "<blockquote><p>a\nb</p></blockquote>",
		"a  \nb":   "<p>a<br>b</p>",
		"---":      "<hr>",
		"|a|b|\n|:-|-:|\n|1|*2*|": `<div class="wide" tabindex="0"><table><thead><tr>` +
			`<th style="text-align: left;">a</th>` +
			`<th style="text-align: right;">b</th></tr></thead><tbody><tr><td style="text-align: left;">1</td>` +
			`<td style="text-align: right;"><em>2</em></td></tr></tbody></table></div>`,
		"```go\na < b && *c*\n```": `<div class="code"><div><span>go</span><button type="button">Copy</button></div>` +
			`<pre tabindex="0"><code>a &lt; b &amp;&amp; *c*</code></pre></div>`,
		"a &amp;lt; &#65;&#x42; &unknown; \\* &lt;b&gt;": "<p>a &amp;lt; AB &amp;unknown; * &lt;b&gt;</p>",
		"[a](https://b.c/d?e=1&amp;f) <https://g.h>": `<p><a href="https://b.c/d?e=1&amp;f">a</a> ` +
			`<a href="https://g.h/">https://g.h</a></p>`,
		"[a][b]\n\n[b]: http://c": `<p><a href="http://c/">a</a></p>`,
		"[m](mailto:a@b.c)":       `<p><a href="mailto:a@b.c">m</a></p>`,
		"![a](https://b/c.png)":   `<p><a href="https://b/c.png">🖼 a</a></p>`,

		// Hostile.
		"<b>x</b>":                     "<p>&lt;b&gt;x&lt;/b&gt;</p>",
		"<script>alert(1)</script>":    `<div class="raw">&lt;script&gt;alert(1)&lt;/script&gt;</div>`,
		"<img src=x onerror=alert(1)>": `<div class="raw">&lt;img src=x onerror=alert(1)&gt;</div>`,
		"<style>*{display:none}</style>\n\nx": `<div class="raw">&lt;style&gt;*{display:none}&lt;/style&gt;</div>` +
			`<p>x</p>`,
		"[a](javascript:alert(1))":          "<p>[a](javascript:alert(1))</p>",
		"[a](JaVaScRiPt:alert(1))":          "<p>[a](JaVaScRiPt:alert(1))</p>",
		"[a](java\tscript:alert(1))":        "<p>[a](java\tscript:alert(1))</p>",
		"[a](&#106;avascript:alert(1))":     "<p>[a](&amp;#106;avascript:alert(1))</p>",
		"[a](&#x6a;avascript&#58;alert(1))": "<p>[a](&amp;#x6a;avascript&amp;#58;alert(1))</p>",
		"[a](data:text/html,<script>)":      "<p>[a](data:text/html,&lt;script&gt;)</p>",
		"[a](vbscript:x) [b](file:///etc)":  "<p>[a](vbscript:x) [b](file:///etc)</p>",
		"[a](/v1/models) [b](//c.d)":        "<p>[a](/v1/models) [b](//c.d)</p>",
		"![a](javascript:alert(1))":         "<p>![a](javascript:alert(1))</p>",
		"![a\" onerror=\"b](https://c/)":    `<p><a href="https://c/">🖼 a" onerror="b</a></p>`,
		`[a](https://b/"onclick="c)`:        `<p><a href="https://b/%22onclick=%22c">a</a></p>`,
		"```\"><img src=x>\nx\n```": `<div class="code"><div><span>"&gt;&lt;img src=x&gt;</span>` +
			`<button type="button">Copy</button></div><pre tabindex="0"><code>x</code></pre></div>`,
		strings.Repeat("_a_ ", 999) + "_b_":  "<p>" + strings.Repeat("<em>a</em> ", 999) + "<em>b</em></p>",
		strings.Repeat("_a_ ", 1000) + "_b_": "<p>" + strings.Repeat("_a_ ", 1000) + "_b_</p>",
		"[constructor](constructor)\n\n[a][__proto__]": "<p>[constructor](constructor)</p>" +
			"<p>[a][<strong>proto</strong>]</p>",
	} {
		require.Equal(t, want, r.Value(fmt.Sprintf("shown(%s)", marshal(text))), "%q", text)
	}
	nested := ""
	for i := range 200 {
		nested += strings.Repeat(" ", 2*i) + "- a\n"
	}
	for _, text := range []string{strings.Repeat("> ", 5000), nested, strings.Repeat("[", 20000),
		strings.Repeat("*a", 10000), strings.Repeat("<a ", 10000), strings.Repeat("![", 10000),
		strings.Repeat("a@", 10000), strings.Repeat("`", 20000), strings.Repeat("__a__", 20000),
		strings.Repeat("http://a.b/(", 20000)} {
		require.NotEmpty(t, r.Value(fmt.Sprintf("shown(%s)", marshal(text))), text[:3])
	}

	// A text that grows is shown as one that is complete, and blocks and code that were there stay.
	r.Value(`globalThis.grown = text => {
		const parent = element("div"), write = renderer(parent), seen = [];
		for (let i = 1; i <= text.length; i++) { write(text.slice(0, i)); seen.push(parent.firstChild); }
		return [parent.innerHTML === (() => { const p = element("div"); renderer(p)(text); return p.innerHTML; })(),
			seen.at(-1) === seen[40]].join(" ");
	}`)
	text := "```py\n" + strings.Repeat("x = 1\n", 20) + "```\n\n# a\n\n- b\n- *c* [d][e]\n\n|a|\n|-|\n|1|\n\nend"
	require.Equal(t, "true true", r.Value(fmt.Sprintf("grown(%s)", marshal(text))))
	text += "\n\n[e]: https://f.g"
	require.Equal(t, "true false", r.Value(fmt.Sprintf("grown(%s)", marshal(text))), "a link may be in any block")
	require.Empty(t, r.Faults)
}

// Markup that a model writes does nothing in the page, and the browser refuses to make elements of a string.
func TestMarkupOfTheModelInABrowser(t *testing.T) {
	const answer = `So <b>it</b> is, <img src=x onerror="document.title='bad'"> <script>document.title='bad'</script>.`
	r := opens(t, always("<think>"+answer+"</think>"+answer), func(c *Config) { c.Chat = format(thinks) })
	r.Becomes(`document.title`, "m")
	r.asks(answer)
	for _, part := range []string{messages, answers, "details.thought > div"} {
		require.Equal(t, answer, strings.TrimSpace(r.Value(shows(part))), part)
	}
	require.Equal(t, "0", r.Value(`document.querySelectorAll("main :is(b, img, script)").length`))
	require.Equal(t, "m", r.Value(`document.title`))
	require.Empty(t, r.Faults)
	require.Contains(t, r.Value(`(() => { try { document.body.innerHTML = "<b>"; } catch (e) { return e; } })()`),
		"TrustedHTML")
}
