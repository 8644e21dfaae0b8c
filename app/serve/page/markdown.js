"use strict";
// What a model writes, as elements. marked's lexer finds the structure, and elements are made here, of the kinds below
// alone: HTML of the model is text, images are links, and links lead to the web or to mail.

function element(name, properties = {}, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}

const longest = 4000; // characters of a paragraph: marked takes the square of the time. More are shown as written
const deepest = 24; // of quotes and lists in each other; what is deeper is shown as it was written

const kinds = {
  // Blocks.
  heading: (t, depth) => element("h" + Math.min(t.depth + 1, 6), {}, ...elements(t.tokens, depth)),
  paragraph: (t, depth) => element("p", {}, ...elements(t.tokens, depth)),
  blockquote: (t, depth) => element("blockquote", {}, ...elements(t.tokens, depth)),
  list: (t, depth) => element(t.ordered ? "ol" : "ul", t.ordered ? {start: t.start} : {},
    ...t.items.map(item => element("li", {}, ...elements(item.tokens, depth)))),
  code: t => codeBlock(t.lang || "", t.text),
  table: (t, depth) => {
    const row = (name, cells) => element("tr", {}, ...cells.map(cell => {
      const e = element(name, {}, ...elements(cell.tokens, depth));
      e.style.textAlign = cell.align || "";
      return e;
    }));
    return element("div", {className: "wide", tabIndex: 0}, element("table", {},
      element("thead", {}, row("th", t.header)), element("tbody", {}, ...t.rows.map(cells => row("td", cells)))));
  },
  hr: () => element("hr"),
  html: t => t.block ? element("div", {className: "raw"}, t.raw.trimEnd()) : t.raw,
  space: () => "",
  def: () => "",
  // In a line.
  text: (t, depth) => t.tokens ? element("span", {}, ...elements(t.tokens, depth)) : unescaped(t.text),
  escape: t => t.text,
  strong: (t, depth) => element("strong", {}, ...elements(t.tokens, depth)),
  em: (t, depth) => element("em", {}, ...elements(t.tokens, depth)),
  del: (t, depth) => element("del", {}, ...elements(t.tokens, depth)),
  codespan: t => element("code", {}, t.text),
  br: () => element("br"),
  checkbox: t => element("input", {type: "checkbox", disabled: true, checked: t.checked, ariaLabel: "done"}),
  link: (t, depth) => link(t, elements(t.tokens, depth)),
  image: t => link(t, ["🖼 " + unescaped(t.text || t.href)]),
};

// elements are those of tokens. Kinds that are not known are shown as they were written.
function elements(tokens, depth = 0) {
  return tokens.map(t => Object.hasOwn(kinds, t.type) && depth < deepest ? kinds[t.type](t, depth + 1) : t.raw);
}

// unescaped is text with the few entities that models write; others stay as they are.
function unescaped(text) {
  const named = {amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0"};
  return text.replace(/&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,6})|#x([0-9a-f]{1,5}));/gi, (all, name, decimal, hex) =>
    name ? named[name.toLowerCase()] : String.fromCodePoint(decimal ? Number(decimal) : parseInt(hex, 16)));
}

function link(t, children) {
  let url;
  try { url = new URL(unescaped(t.href)); } catch { return t.raw; }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return t.raw;
  return element("a", {href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer"}, ...children);
}

function codeBlock(language, text) {
  const code = element("code", {}, text), button = element("button", {type: "button"}, "Copy");
  button.addEventListener("click", () => copy(code.textContent, button));
  return element("div", {className: "code"}, element("div", {}, element("span", {}, language), button),
    element("pre", {tabIndex: 0}, code));
}

class Lexer extends marked.Lexer {
  inline(text, tokens = []) {
    if (text.length <= longest) return super.inline(text, tokens);
    tokens.push({type: "escape", raw: text, text});
    return tokens;
  }
}

// renderer returns a function that shows a text in a parent, and again as it grows: blocks that are as before stay, and
// a code block that grew is the same element, so that nothing flickers or scrolls back.
function renderer(parent) {
  let shown = [];
  return text => {
    let blocks;
    try {
      blocks = new Lexer().lex(text);
    } catch { // nested too deeply
      blocks = [{type: "paragraph", raw: text, tokens: [{type: "escape", text}]}];
    }
    if (blocks.some(t => t.type === "def")) shown = []; // of links in any block
    let same = 0;
    while (same < shown.length && same < blocks.length && shown[same].raw === blocks[same].raw) same++;
    const last = shown[same], next = blocks[same];
    if (last && next && last.type === "code" && next.type === "code" && last.lang === next.lang) {
      last.node.querySelector("code").textContent = next.text;
      next.node = last.node;
    }
    for (let i = 0; i < blocks.length; i++) blocks[i].node = i < same ? shown[i].node : blocks[i].node;
    for (const t of blocks) if (!t.node) t.node = element("div", {className: "block"}, ...elements([t]));
    while (parent.childNodes.length > blocks.length) parent.lastChild.remove();
    blocks.forEach((t, i) => {
      if (!parent.childNodes[i]) parent.append(t.node);
      else if (parent.childNodes[i] !== t.node) parent.childNodes[i].replaceWith(t.node);
    });
    shown = blocks;
  };
}

// copy copies a text, and says on its button whether it could. Pages that are not local or encrypted have no clipboard.
async function copy(text, button) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", {value: text});
    document.body.append(area);
    area.select();
    copied = document.execCommand("copy");
    area.remove();
  }
  button.textContent = copied ? "Copied" : "Not copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
