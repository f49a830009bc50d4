// The outbox: answers that are being sent. An answer enters it before the first request and leaves it with the server's decision. If a
// request or reply is lost, the answer is sent again with the same idempotency key and counts once. unsent.js draws it.
import { csrf, desk, el, otherDesks, storage, storagePrefix } from "./dom.js";
import { removeDraft } from "./drafts.js";

// Seconds until the next try; the last value repeats. Milliseconds until a request is aborted.
const PAUSES = [1, 2, 4, 8, 15, 30], REQUEST_TIMEOUT = 20_000;
const read = () => storage.get("outbox", []);
const notifyChanged = () => dispatchEvent(new Event("yourturn:outbox"));
function write(items) { storage.set("outbox", items); notifyChanged(); scheduleFlush(); }
// The same answer to the same question: meanwhile it may have been taken back or replaced.
const same = (item, other) => item.id === other.id && item.key === other.key;
function update(item, more) { write(read().map((other) => (same(item, other) ? { ...other, ...more } : other))); }

// An item: { id, url, body, key, words, title, draft }, then: left (a request may have arrived), tries, next, why ("", "login"),
// state ("", "late", "refused"), told (what the server said).
export const items = read;
export const queued = (id) => read().find((item) => item.id === id);
export const inFlight = new Map();
const isOpen = (item) => !item.state;

export function put(item) {
  write([...read().filter((other) => other.id !== item.id), item]);
  removeDraft(item.id);
}
export function drop(id) {
  const item = queued(id);
  inFlight.get(id)?.abort();
  if (item) write(read().filter((other) => other.id !== id));
  return item;
}

// One try. Returns the server's decision, or null if another try follows. A late or refused answer stays until the person decides.
export async function attempt(item) {
  const body = new URLSearchParams(item.body), controller = new AbortController();
  body.set("csrf", csrf);
  inFlight.set(item.id, controller);
  if (navigator.onLine) update(item, { left: true }); else notifyChanged();
  const timeout = setTimeout(() => controller.abort(), REQUEST_TIMEOUT);
  try {
    const response = await fetch(item.url, { method: "POST", body, signal: controller.signal, headers: { Accept: "application/json" } });
    const data = await response.json();
    if (response.status !== 401 && response.status !== 429 && response.status < 500) {
      if (response.ok) { write(read().filter((other) => !same(item, other))); removeDraft(item.id); }
      else update(item, { state: data.late ? "late" : "refused", told: data.late ?? [data.error?.message, data.error?.hint].filter(Boolean).join(". ") });
      return { ok: response.ok, status: response.status, data };
    }
    scheduleRetry(item, response.status === 401 ? "login" : "", Number(response.headers.get("Retry-After")));
  } catch { scheduleRetry(item); } finally {
    clearTimeout(timeout);
    if (inFlight.get(item.id) === controller) inFlight.delete(item.id);
    notifyChanged();
  }
  return null;
}
function scheduleRetry(item, why = "", minSeconds = 0) {
  const tries = (queued(item.id)?.tries ?? 0) + 1, pause = PAUSES[Math.min(tries, PAUSES.length) - 1];
  const now = queued(item.id)?.soon && !minSeconds;  // retryNow() was called during the request
  update(item, { tries, why, soon: false, next: now ? 0 : Date.now() + 1000 * Math.max(pause, minSeconds || 0) });
}

let timer = 0;
function scheduleFlush() {
  clearTimeout(timer);
  const due = Math.min(...read().filter(isOpen).map((item) => item.next ?? Infinity));
  if (navigator.onLine && due < Infinity) timer = setTimeout(flush, Math.max(50, due - Date.now()));
}

let flushing = false;
async function sendDue() {
  for (const item of read().filter(isOpen)) {
    const still = queued(item.id);
    if (!navigator.onLine || !still || !same(item, still) || inFlight.has(item.id) || (still.next ?? 0) > Date.now()) continue;
    const result = await attempt(still);
    if (!result) continue;
    settled(item, result);
  }
}
// `seen`: the page shows the result already.
export function settled(item, { ok, data }, seen = false) {
  dispatchEvent(new CustomEvent("yourturn:settled", { detail: { item, ok, data, seen } }));
}
export async function flush() {
  scheduleFlush();
  if (flushing || !navigator.onLine || !read().some(isOpen)) return;
  flushing = true;
  try { await (navigator.locks ? navigator.locks.request(`${storagePrefix}outbox`, sendDue) : sendDue()); } finally { flushing = false; scheduleFlush(); }
}
// Sends all items now: the person asked for it, or the network is back.
export function retryNow() {
  write(read().map((item) => (isOpen(item) ? { ...item, next: 0, soon: inFlight.has(item.id) } : item)));
  return flush();
}

// Items of other desks at this address, or from before a restore: shown with their words, never sent.
export const strayItems = () => otherDesks.list().filter(({ name }) => name === "outbox").flatMap(({ key, of }) => {
  const result = otherDesks.get(key) ?? [];
  if (!result.length) otherDesks.drop(key);
  return result.map((item) => ({ ...item, state: "stray", at: key, restored: of !== "" && of.split(".")[0] === desk.split(".")[0] }));
});
export function discardStray(stray) {
  otherDesks.set(stray.at, (otherDesks.get(stray.at) ?? []).filter((item) => !same(item, stray)));
  notifyChanged();
}

// Opens the server's page about a late answer by submitting the item as a plain form. The request can fail, so the item is kept until
// that page, or the page after it, reports that it was used.
export function openLatePage(item) {
  const body = new URLSearchParams(item.body);
  body.set("csrf", csrf);
  const form = el("form", { method: "post", action: item.url, hidden: true });
  for (const [name, value] of body) form.append(el("input", { type: "hidden", name, value }));
  document.body.append(form);
  form.submit();
}

const closeLate = (id) => { drop(id); removeDraft(id); storage.drop("choosing"); };
const chosen = new URLSearchParams(location.search).has("kept") && location.pathname.split("/")[2];
if (chosen && storage.get("choosing") === chosen) closeLate(chosen);
export const rememberLate = (id) => storage.set("choosing", id);
addEventListener("submit", (event) => { const id = event.target.dataset.late; if (id) rememberLate(id); });
addEventListener("click", (event) => { const id = event.target.closest?.("[data-drop]")?.closest("[data-late]")?.dataset.late; if (id) closeLate(id); });

addEventListener("online", retryNow);
addEventListener("storage", (event) => { if (event.key === `${storagePrefix}outbox`) { notifyChanged(); scheduleFlush(); } });
