"use strict";
// The page talks to the server as any client does: v1/models says what the model can, and answers come as streams.
const $ = id => document.getElementById(id);
const saved = ["system", "temperature", "top_p", "max_tokens", "seed", "thinking", "theme"]; // of the settings
const continued = 256; // tokens of a completion, unless the settings say; few models without a template end a text

let model = null;   // what the server says of its model
let turns = [];     // of the conversation: {asked, plain, answer, thought, seconds, note}, and shown, its elements
let running = null; // aborts the answer that is being written
let edited = null;  // the number of the turn whose message is being edited
let draft = "";     // what was in the field before

const inChat = () => document.querySelector("[name=mode]:checked").value === "chat";

// The conversation and the settings are kept while the tab is open; the key is not.
let kept = {};
try { kept = JSON.parse(sessionStorage.amkc); } catch {} // there is none
for (const id of saved) if (kept.fields?.[id]) $(id).value = kept.fields[id]; // of this release, or of another

function save() {
  if (!model) return; // whose conversation is still kept
  const fields = Object.fromEntries(saved.map(id => [id, $(id).value]));
  const all = {model: model.id, chat: inChat(), turns: turns.map(({shown, ...turn}) => turn), fields};
  try { sessionStorage.amkc = JSON.stringify(all); } catch {} // it is full, or not allowed
}

// The server.

function headers() {
  const h = {"Content-Type": "application/json"};
  if ($("key").value) h.Authorization = "Bearer " + $("key").value;
  return h;
}

async function request(path, options = {}) {
  const response = await fetch(path, {headers: headers(), ...options});
  if (response.ok) return response;
  let message = "the server answered with status " + response.status;
  try { message = (await response.json()).error.message; } catch {}
  throw Object.assign(new Error(message), {status: response.status});
}

async function describe() {
  model = (await (await request("v1/models")).json()).data[0];
  $("model").textContent = document.title = model.id;
  $("greeting").textContent = "Talk to " + model.id;
  $("about").textContent = `${model.max_model_len.toLocaleString("en")} tokens of context` +
    (model.chat ? "" : " · the model has no chat template: it continues what you write");
  for (const name of ["temperature", "top_p"]) $(name).placeholder = model.defaults[name];
  $("switch").hidden = !model.thinking_switch;
  document.querySelector("[value=chat]").disabled = !model.chat;
  if (kept.turns) turns = kept.turns; // with this model, or with the one that was served before
  setMode(model.chat && (kept.model === model.id ? kept.chat : inChat()));
  kept = {};
}

// body is the request for the answer of a turn.
function body(turn) {
  const before = turns.slice(0, turns.indexOf(turn)), chat = !turn.plain;
  const b = {model: model.id, stream: true, stream_options: {include_usage: true}};
  for (const id of ["temperature", "top_p", "max_tokens", "seed"]) if ($(id).value) b[id] = Number($(id).value);
  if (!chat) {
    const texts = [...before, turn].flatMap(t => [t.asked, t.answer]);
    b.prompt = texts.reduce((all, text, i) => // a message begins a line
      all + (i % 2 || !all || !text || all.endsWith("\n") ? "" : "\n") + text);
    b.max_tokens ??= continued;
    return b;
  }
  b.messages = $("system").value.trim() ? [{role: "system", content: $("system").value}] : [];
  for (const t of before) {
    const said = {role: "assistant", content: t.answer};
    if (t.thought) said.reasoning_content = t.thought;
    b.messages.push({role: "user", content: t.asked}, said);
  }
  b.messages.push({role: "user", content: turn.asked});
  if (model.thinking_switch && $("thinking").value) {
    b.chat_template_kwargs = {[model.thinking_switch]: $("thinking").value === "true"};
  }
  return b;
}

// events calls a function with each event of a stream, in the groups in which they arrive, and with the comment that
// says how much of a long prompt has been read.
async function events(response, each) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    const group = lines.filter(line => line.startsWith("data: {")).map(line => JSON.parse(line.slice(6)));
    const failed = group.find(event => event.error);
    each(group.filter(event => !event.error), lines.findLast(line => line.endsWith(" of the prompt are read")));
    if (failed) throw new Error(failed.error.message);
  }
}

// write reads the answer of a turn, and shows it as it comes.
async function write(turn) {
  const times = [], began = performance.now(), chat = !turn.plain;
  let first = 0, last = 0, usage = null, finish = "", thought = 0;
  const response = await request(chat ? "v1/chat/completions" : "v1/completions",
    {method: "POST", body: JSON.stringify(body(turn)), signal: running.signal});
  await events(response, (group, reading) => {
    let pieces = 0;
    const now = performance.now();
    for (const event of group) {
      usage = event.usage || usage;
      const choice = event.choices[0] || {}, delta = choice.delta || {};
      const text = choice.text || delta.content || "", thinks = delta.reasoning_content || "";
      finish = choice.finish_reason || finish;
      if (text && turn.thought && !turn.answer) thought = now - (began + first);
      turn.answer += text;
      turn.thought += thinks;
      pieces += text || thinks ? 1 : 0;
    }
    if (!last) turn.note = reading && !pieces ? reading.slice(2) : "";
    if (reading) later(() => progress(turn));
    if (!pieces) return;
    // Events that arrive together share the time since the ones before.
    if (last) for (let i = 0; i < pieces; i++) times.push((now - last) / pieces); else first = now - began;
    last = now;
    turn.seconds = thought / 1000;
    later(() => { progress(turn); chart(times, first); });
  }).finally(() => { if (last) chart(times, first); });
  if (!usage) return;
  const tokens = usage.completion_tokens, rate = 1000 * (tokens - 1) / (last - began - first);
  turn.note = `${tokens} token${tokens === 1 ? "" : "s"}` +
    (tokens > 1 && last > began + first ? ` · ${rate.toFixed(1)} per second` : "") +
    (finish === "length" ? " · length limit reached" : "");
  const used = usage.prompt_tokens + tokens;
  $("context").textContent = `context ${used.toLocaleString("en")} of ${model.max_model_len.toLocaleString("en")}`;
}

// Asking.

// ask requests the answer to a text as turn number at, in place of that turn and of those after it; null adds one. A
// request that fails changes nothing: the conversation is as before, and a typed text is in the field again.
async function ask(asked, at, typed) {
  if (running) return;
  let before = turns, turn = null;
  running = new AbortController();
  edited = null;
  notify("");
  busy(true);
  try {
    if (!model) await describe();
    before = turns;
    turn = {asked, plain: !inChat(), answer: "", thought: "", note: ""};
    turns = [...before.slice(0, at ?? before.length), turn];
    draw();
    follow(true);
    await write(turn);
  } catch (error) {
    const stopped = error.name === "AbortError", replaced = before;
    const restore = () => { turns = replaced; notify(""); draw(); };
    const part = Boolean(turn?.answer || turn?.thought);
    if (part) turn.note = stopped ? "stopped" : "interrupted";
    else {
      turns = before;
      if (typed) back(asked, at);
    }
    const undo = part && at !== null ? ["Undo", restore] : []; // what it replaced was complete
    if (!stopped) complain(error, ...undo);
    else if (undo.length) notify("A part of an answer replaced the one before.", ...undo);
  }
  running = null;
  busy(false);
  later(null);
  if (turns === before) draw();
  else progress(turn);
  save();
  grow();
}

function busy(on) {
  $("send").textContent = on ? "■" : "↑";
  $("send").ariaLabel = on ? "Stop" : "Send";
  $("send").title = on ? "Stop (Esc)" : "Send (Enter)";
  $("status").textContent = on ? "The model is writing." : "The answer is complete.";
  $("clear").disabled = on || !turns.length;
  document.body.classList.toggle("busy", on);
}

function submit() {
  const text = $("text").value, at = edited;
  if (!text.trim() && (inChat() || !turns.length)) return; // without a text, a completion goes on
  $("text").value = at === null ? "" : draft;
  grow();
  ask(text, at, true);
}

// back puts a message that was refused into the field again, before what was written meanwhile.
function back(text, at) {
  if (at !== null) {
    edited = at;
    draft = $("text").value;
    $("text").value = text;
  } else {
    $("text").value = text + ($("text").value && "\n" + $("text").value);
  }
}

function edit(turn) {
  if (edited === null) draft = $("text").value;
  edited = turns.indexOf(turn);
  $("text").value = turn.asked;
  notify("Editing a message: the new one replaces it, and what follows it.", "Cancel", stopEditing);
  grow();
  $("text").focus();
}

function stopEditing() {
  if (edited !== null) $("text").value = draft;
  edited = null;
  notify("");
  grow();
}

// drop replaces the conversation by a part of it, and offers to undo that.
function drop(left, what) {
  const before = turns;
  turns = left;
  stopEditing();
  notify(what, "Undo", () => { turns = before; notify(""); draw(); });
  if (!left.length) $("context").textContent = "";
  draw();
  $("text").focus();
}

// What is shown.

function notify(text, action, does) {
  $("notice").hidden = !text;
  $("notice").className = "";
  $("notice").replaceChildren(element("span", {}, text), button(action || "Dismiss", "", does || (() => notify(""))));
}

function complain(error, action, does) {
  if (error.status === 401) notify(error.message, "Enter the key", () => openSettings("key"));
  else notify(error.message, action, does);
  $("notice").className = "wrong";
}

function draw() {
  $("talk").replaceChildren(...turns.map(turn => (turn.shown ??= section(turn)).article));
  $("empty").hidden = turns.length > 0;
  $("clear").disabled = running || !turns.length;
  save();
}

function button(text, label, does) {
  const b = element("button", {type: "button"}, text);
  if (label) b.ariaLabel = b.title = label;
  b.addEventListener("click", () => does(b));
  return b;
}

// section makes the elements of a turn.
function section(turn) {
  const summary = element("summary"), thought = element("div"), answer = element("div", {className: "answer"});
  const thoughts = element("details", {className: "thought"}, summary, thought), note = element("span");
  const again = button("Regenerate", "Regenerate the answer", () => ask(turn.asked, turns.indexOf(turn), false));
  again.className = "again"; // of the last turn alone
  const article = element("article", {},
    element("div", {className: "asked"},
      element("div", {className: "user", hidden: !turn.asked}, turn.asked),
      element("div", {className: "actions"},
        button("Copy", "Copy the message", b => copy(turn.asked, b)),
        button("Edit", "Edit the message", () => edit(turn)),
        button("Delete", "Delete the message and its answer", () => drop(turns.filter(t => t !== turn), "Deleted.")))),
    thoughts, answer,
    element("div", {className: "actions"}, button("Copy", "Copy the answer", b => copy(turn.answer, b)), again, note));
  article.classList.toggle("plain", turn.plain);
  turn.shown = {article, summary, thoughts, answer, note, think: renderer(thought),
    write: turn.plain ? text => { answer.textContent = text; } : renderer(answer)};
  progress(turn);
  return turn.shown;
}

// progress shows how far the answer of a turn is.
function progress(turn) {
  const {summary, thoughts, answer, note, think, write} = turn.shown, bottom = atBottom();
  const writing = running && turn === turns.at(-1);
  thoughts.hidden = !turn.thought;
  if (turn.thought) think(turn.thought);
  summary.textContent = writing && !turn.answer ? "Thinking…" :
    turn.seconds ? `Thought for ${turn.seconds.toFixed(1)} s` : "Thought";
  write(turn.answer);
  answer.ariaBusy = String(Boolean(writing));
  note.textContent = turn.note;
  follow(bottom);
}

// later does something before the next picture, and not more often than takes a quarter of the time; null forgets it.
let pending = null, ready = 0;
function later(does) {
  const waits = pending;
  pending = does;
  if (waits || !does) return;
  setTimeout(() => requestAnimationFrame(() => {
    const began = performance.now(), task = pending;
    pending = null;
    if (task) task();
    ready = performance.now() + 3 * (performance.now() - began);
  }), Math.max(0, ready - performance.now()));
}

// A reader who has scrolled up stays there.
const atBottom = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 48;
function follow(on) {
  if (on) $("scroll").scrollTop = $("scroll").scrollHeight;
  $("latest").hidden = atBottom();
}

// chart draws the time of each token: each has an event, but for those that complete no character.
function chart(times, first) {
  const recent = times.slice(-300), most = Math.max(...recent, 1e-3), sorted = [...times].sort((a, b) => a - b);
  $("chart").toggleAttribute("hidden", !recent.length);
  $("chart").setAttribute("viewBox", `0 0 ${Math.max(2 * recent.length - 2, 1)} 40`);
  $("chart").firstElementChild.setAttribute("d",
    recent.map((t, i) => `${i ? "L" : "M"}${i * 2} ${(39 - 38 * t / most).toFixed(1)}`).join(""));
  $("speed").textContent = `first ${first.toFixed(0)} ms` +
    (times.length ? ` · median ${sorted[Math.floor(sorted.length / 2)].toFixed(2)} ms per token` : "");
}

function setMode(chat) {
  document.querySelector(`[value=${chat ? "chat" : "completion"}]`).checked = true;
  $("max_tokens").placeholder = chat ? "no limit" : continued;
  $("text").placeholder = chat ? "Write a message" :
    "Write the beginning of a text; Enter alone continues the last one";
}

// grow makes the field as high as its text.
function grow() {
  $("text").style.height = "auto";
  $("text").style.height = $("text").scrollHeight + 2 + "px";
}

function paint() {
  document.documentElement.style.colorScheme = $("theme").value;
}

function openSettings(field) {
  $("settings").showModal();
  if (field) $(field).focus();
}

// What the user does.

$("form").addEventListener("submit", event => {
  event.preventDefault();
  if (running) running.abort(); else submit();
});
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!running) submit(); // what is written meanwhile is not lost
});
document.addEventListener("keydown", event => {
  if (event.key !== "Escape" || event.isComposing || $("settings").open) return;
  if (running) running.abort(); else if (edited !== null) stopEditing();
});
$("scroll").addEventListener("scroll", () => follow(false));
addEventListener("resize", () => follow(false));
$("latest").addEventListener("click", () => follow(true));
$("clear").addEventListener("click", () => drop([], "Conversation cleared."));
$("open").addEventListener("click", () => openSettings());
$("mode").addEventListener("change", () => { setMode(inChat()); save(); $("text").focus(); });
$("settings").addEventListener("change", () => { paint(); save(); });
$("settings").addEventListener("close", () => { if (!model) begin(); });

async function begin() {
  setMode(inChat());
  try {
    await describe();
    notify("");
  } catch (error) {
    complain(error, "Try again", begin);
  }
  paint();
  draw();
  follow(true);
}
begin();
