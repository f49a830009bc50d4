// What has not arrived yet, where it can be seen: at its question, in its row, in the outbox above the list, in a strip.
import { $, $$, button, el, icon, part, say, shown, strip, toast, wide } from "./dom.js";
import { again, discard, drop, flush, flying, hurry, items, strays } from "./outbox.js";
import { fill, save } from "./drafts.js";
import { clock } from "./time.js";

const SAVED = "Saved on this device. Sent when you are back.", TRYING = "Not sent yet, trying again.";
const STRAY = "Not sent. It was for another desk, which was served at this address before.", PAST = "Not sent. This desk was restored from a backup since.";
const door = () => el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in");
const LABELS = { late: "Too late", stray: "Not sent" };
const many = (n, one, more) => `${n} ${n === 1 ? one : more}`;

function state(item) {
  if (item.state === "late") return `Too late. ${item.told.lead} ${item.told.rest}${item.told.iso ? `, at ${clock(item.told.iso)}` : ""}.`;
  if (item.state === "stray") return item.restored ? PAST : STRAY;
  if (item.state === "refused") return `Not sent. ${item.told}`;
  if (!navigator.onLine) return SAVED;
  if (item.why === "door") return "Not sent: you were signed out.";
  return item.tries ? TRYING : "";  // nothing is wrong with one that is on its way for the first time
}
function box(item) {
  const told = state(item), at = $$(`form[data-q="${item.id}"]`).find(shown);
  if (!told) return null;
  const acts = item.state === "late" ? [button("What now?", () => again(item), "go"), button("Drop it", () => drop(item.id), "plain")]
    : item.state === "stray" ? [...(item.restored ? [el("a", { className: "btn", href: `/questions/${item.id}` }, "Look at it")] : []), button("Drop it", () => discard(item), "plain")]
    : [...(item.why === "door" ? [door()] : navigator.onLine && !item.state ? [button("Try now", hurry)] : []),
      at ? button("Change", () => change(at)) : el("a", { className: "btn", href: `/questions/${item.id}` }, "Change"),
      button(item.state ? "Drop it" : "Take back", () => take(item), "plain")];
  const made = el("div", { className: "unsent", role: "status" }, el("p", { className: "why" }, told), el("p", { className: "what" }, item.words), el("div", { className: "acts" }, ...acts));
  made.dataset.of = item.id;
  made.dataset.says = `${told} ${item.words} ${acts.length}`;
  return made;
}
function place(where, item) {
  const old = $(":scope > .unsent", where), made = item && box(item);
  if (old && made && old.dataset.says === made.dataset.says) return;
  old?.remove();
  if (made) where.append(made);
}

// --- change, take back ---

// Another key: what is sent then is another answer, not the same one again.
function afresh(form) {
  const key = $("input[name=key]", form);
  if (key) key.value = `web-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`;
}
// What was queued is what the form shows, and is not on its way any more.
export function change(form, edited = false) {
  const item = drop(form.dataset.answer);
  if (!item) return;
  afresh(form);
  save(form);
  if (!edited) ($$("[data-need], .opt input:checked, .say", form)[0])?.focus();
  said(item, "is not sent. Send what you choose now.");
}
function take(item) {
  drop(item.id);
  for (const form of $$(`form[data-answer="${item.id}"]`)) { afresh(form); form.reset(); if (form.dataset.q) { fill(form, null); save(form); form.dispatchEvent(new Event("change", { bubbles: true })); } }
  said(item, "was taken back.");
}
function said(item, words) {
  const what = item.words.split("\n")[0].slice(0, 60);
  tell_all(`${what} ${item.left ? "is taken back, unless it had arrived. Looking…" : words}`);
  if (item.left) look(item.id, what);
}
// A request that has left cannot be called back: what is known is said, and no more.
async function look(id, what) {
  const found = await part(`/questions/${id}?as=row`).catch(() => null), closed = found && $(".result", found)?.textContent;
  tell_all(closed ? `${id} is closed: ${closed}` : found ? `${what} has not arrived so far. If it still does, this page says so.` : `Whether ${what} has arrived is not known. This page says it when it is live again.`);
  dispatchEvent(new CustomEvent("yourturn:taken", { detail: id }));
}
function tell_all(told) { toast(told); say(told); }

// --- everywhere at once ---

// Of a closed question its result is told. What was tried to say to it is asked about again at once, and is told when it was too late.
const is_open = (form) => $(".answer", form) && !form.dataset.closed;

export function draw() {
  const waiting = items(), seen = new Set();
  for (const form of $$("form[data-q]")) {
    const item = waiting.find((one) => one.id === form.dataset.q), bar = $(".answer", form) ?? $(".q-top", form);
    if (item?.draft && !form.hasAttribute("data-unsent") && !flying.has(item.id)) { fill(form, item.draft); form.dispatchEvent(new Event("yourturn:filled", { bubbles: true })); }
    place(bar, item && (item.state || is_open(form)) ? item : null);
    form.toggleAttribute("data-unsent", Boolean($(":scope > .unsent", bar)));
    if (item && shown(form)) seen.add(item.id);
  }
  for (const row of $$(".list .row[data-id]")) {
    const item = waiting.find((one) => one.id === row.dataset.id);
    place(row, item && !seen.has(item.id) && (item.state || !row.classList.contains("over")) ? item : null);
    row.classList.toggle("queued", Boolean($(":scope > .unsent", row)));
    if (item) seen.add(item.id);
  }
  const others = strays();
  outbox([...waiting.filter((item) => !seen.has(item.id) && state(item)), ...others]);
  tell([...waiting, ...others]);
}

// Above the list: what belongs to no row that is shown.
function outbox(left) {
  const list = $(".list"), head = list && $(".list-head", list);
  if (!head) return;
  const old = $("[data-outbox]", list), says = left.map((item) => item.id + item.key + state(item)).join();
  if (old?.dataset.says === says) return;
  old?.remove();
  if (!left.length) return;
  const rows = el("ul"), made = el("section", { className: "outbox", "aria-label": "Outbox" }, el("h2", { className: "group" }, "Outbox ", el("span", {}, "answers that have not arrived")), rows);
  for (const item of left) {
    const row = el("li", { className: "row" }, el("span", { className: "kind" }, icon("clock")), el("div", { className: "body" }, el("h3", {}, item.state === "stray" ? item.title : el("a", { href: `/questions/${item.id}` }, item.title)), el("p", { className: "meta" }, el("b", {}, LABELS[item.state] ?? "Queued"), el("span", { className: "nb" }, item.id))));
    row.append(box(item));
    rows.append(row);
  }
  made.dataset.outbox = "";
  made.dataset.says = says;
  head.after(made);
}

function tell(waiting) {
  const late = waiting.filter((item) => item.state && !$$(`form[data-q="${item.id}"] .unsent, [data-late="${item.id}"]`).some(shown)).length, open = waiting.filter((item) => !item.state && (item.tries || !navigator.onLine));
  const { live, since } = document.documentElement.dataset, n = open.length, elsewhere = open.filter((item) => !$$(`.unsent[data-of="${item.id}"]`).some(shown)).length;
  const saved = n ? ` ${many(n, "answer waits", "answers wait")} on this device and ${n === 1 ? "is" : "are"} sent when you are back.` : " What you answer is kept on this device and sent when you are back.";
  if (!navigator.onLine) strip("net", `Offline.${saved}`);
  else if (open.some((item) => item.why === "door")) strip("net", "You were signed out. What waits on this device is sent when you are back.", door());
  else if (live === "lost" && since) strip("net", `Not live since ${since}, trying again.${n ? ` ${many(n, "answer waits", "answers wait")} on this device.` : ""}`, button("Try now", () => { hurry(); dispatchEvent(new Event("yourturn:connect")); }));
  else if (elsewhere) strip("net", `${many(elsewhere, "answer is", "answers are")} not sent yet, trying again.`, button("Try now", hurry));
  else strip("net");
  if (late) strip("late", `${many(late, "answer", "answers")} could not be sent.`, location.pathname === "/inbox" ? button("Look", () => $(".unsent")?.scrollIntoView({ block: "center" })) : el("a", { href: "/inbox" }, "Look")); else strip("late");
}

for (const sort of ["yourturn:outbox", "yourturn:live", "online", "offline"]) addEventListener(sort, draw);
wide.addEventListener("change", draw);
addEventListener("yourturn:settled", ({ detail: { item, ok, data, seen } }) => {
  const words = ok ? `Sent ${item.id}. ${data.sent}` : data.late ? `${item.id} came too late. ${data.late.lead} ${data.late.rest}${data.late.iso ? `, at ${clock(data.late.iso)}` : ""}.` : `${item.id} was not sent. ${data.error?.message ?? ""}`;
  if (!seen) toast(words, data.late ? button("What now?", () => again(item), "go") : el("a", { className: "btn go", href: `/questions/${item.id}` }, "Look"));
  say(words);
});
flush();
