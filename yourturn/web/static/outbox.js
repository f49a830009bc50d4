// Answers on their way. An answer is put here before it is sent and leaves when the server has said what became of it: so one
// whose request or reply was lost is sent again, with the same idempotency key, and counts once. Nothing is drawn here.
import { csrf, desk, el, elsewhere, keep, mine } from "./dom.js";
import { forget } from "./drafts.js";

// Seconds until the next try; the last one again and again.
const PAUSES = [1, 2, 4, 8, 15, 30], PATIENCE = 20_000;
const read = () => keep.get("outbox", []);
const changed = () => dispatchEvent(new Event("yourturn:outbox"));
function write(items) { keep.set("outbox", items); changed(); plan(); }
// Only what is still there, and still that answer: it may have been taken back, or replaced, meanwhile.
const same = (one, other) => one.id === other.id && one.key === other.key;
function update(item, more) { write(read().map((other) => (same(item, other) ? { ...other, ...more } : other))); }

// An item: { id, url, body, key, words, title, task, draft }, then: left (a request may have arrived), tries, next, why ("", "door"), state ("", "late", "refused"), told.
export const items = read;
export const queued = (id) => read().find((item) => item.id === id);
export const flying = new Map();
const open = (item) => !item.state;

export function put(item) {
  write([...read().filter((other) => other.id !== item.id), item]);
  forget(item.id);
}
export function drop(id) {
  const item = queued(id);
  flying.get(id)?.abort();
  if (item) write(read().filter((other) => other.id !== id));
  return item;
}

// One try. What the server decided, or nothing: then it is tried again. What did not count stays until somebody says what becomes of it.
export async function attempt(item) {
  const body = new URLSearchParams(item.body), line = new AbortController();
  body.set("csrf", csrf);
  flying.set(item.id, line);
  if (navigator.onLine) update(item, { left: true }); else changed();
  const late = setTimeout(() => line.abort(), PATIENCE);
  try {
    const answer = await fetch(item.url, { method: "POST", body, signal: line.signal, headers: { Accept: "application/json" } });
    const data = await answer.json();
    if (answer.status !== 401 && answer.status !== 429 && answer.status < 500) {
      if (answer.ok) { write(read().filter((other) => !same(item, other))); forget(item.id); }
      else update(item, { state: data.late ? "late" : "refused", told: data.late ?? [data.error?.message, data.error?.hint].filter(Boolean).join(". ") });
      return { ok: answer.ok, status: answer.status, data };
    }
    later(item, answer.status === 401 ? "door" : "", Number(answer.headers.get("Retry-After")));
  } catch { later(item); } finally {
    clearTimeout(late);
    if (flying.get(item.id) === line) flying.delete(item.id);
    changed();
  }
  return null;
}
function later(item, why = "", least = 0) {
  const tries = (queued(item.id)?.tries ?? 0) + 1, pause = PAUSES[Math.min(tries, PAUSES.length) - 1];
  const now = queued(item.id)?.soon && !least;  // hurried while it was on its way
  update(item, { tries, why, soon: false, next: now ? 0 : Date.now() + 1000 * Math.max(pause, least || 0) });
}

let timer = 0;
function plan() {
  clearTimeout(timer);
  const due = Math.min(...read().filter(open).map((item) => item.next ?? Infinity));
  if (navigator.onLine && due < Infinity) timer = setTimeout(flush, Math.max(50, due - Date.now()));
}

let busy = false;
async function drain() {
  for (const item of read().filter(open)) {
    const still = queued(item.id);
    if (!navigator.onLine || !still || !same(item, still) || flying.has(item.id) || (still.next ?? 0) > Date.now()) continue;
    const found = await attempt(still);
    if (!found) continue;
    settled(item, found);
  }
}
// `seen`: it is told where the person looks already.
export function settled(item, { ok, data }, seen = false) {
  dispatchEvent(new CustomEvent("yourturn:settled", { detail: { item, ok, data, seen } }));
}
export async function flush() {
  plan();
  if (busy || !navigator.onLine || !read().some(open)) return;
  busy = true;
  try { await (navigator.locks ? navigator.locks.request(`${mine}outbox`, drain) : drain()); } finally { busy = false; plan(); }
}
// Now, whatever was planned: somebody asked for it, or the network is back.
export function hurry() {
  write(read().map((item) => (open(item) ? { ...item, next: 0, soon: flying.has(item.id) } : item)));
  return flush();
}

// What was queued at other desks of this address, or here before a restore: shown with its words, never sent from here.
export const strays = () => elsewhere.list().filter(({ name }) => name === "outbox").flatMap(({ key, of }) => {
  const found = elsewhere.get(key) ?? [];
  if (!found.length) elsewhere.drop(key);
  return found.map((item) => ({ ...item, state: "stray", at: key, restored: of !== "" && of.split(".")[0] === desk.split(".")[0] }));
});
export function discard(stray) {
  elsewhere.set(stray.at, (elsewhere.get(stray.at) ?? []).filter((item) => !same(item, stray)));
  changed();
}

// The page about a late answer comes from the server: the same form, sent as a form. Its request can fail like any other: the words
// are kept until that page, or the one that says that they became a note, is there and they are used.
export function again(item) {
  const body = new URLSearchParams(item.body);
  body.set("csrf", csrf);
  const form = el("form", { method: "post", action: item.url, hidden: true });
  for (const [name, value] of body) form.append(el("input", { type: "hidden", name, value }));
  document.body.append(form);
  form.submit();
}

const used = (id) => { drop(id); forget(id); keep.drop("choosing"); };
const chosen = new URLSearchParams(location.search).has("kept") && location.pathname.split("/")[2];
if (chosen && keep.get("choosing") === chosen) used(chosen);
export const choosing = (id) => keep.set("choosing", id);
addEventListener("submit", (e) => { const id = e.target.dataset.late; if (id) choosing(id); });
addEventListener("click", (e) => { const id = e.target.closest?.("[data-drop]")?.closest("[data-late]")?.dataset.late; if (id) used(id); });

addEventListener("online", hurry);
addEventListener("storage", (e) => { if (e.key === `${mine}outbox`) { changed(); plan(); } });
