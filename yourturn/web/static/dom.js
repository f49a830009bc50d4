// The few things that every module needs.

export const $ = (what, root = document) => root.querySelector(what);
export const $$ = (what, root = document) => [...root.querySelectorAll(what)];
// Takes up space on the page: the pane beside the list does not on a narrow screen.
export const shown = (at) => Boolean(at?.getClientRects().length);

const meta = $("meta[name=yourturn]");
export const boot = meta?.content ?? "";
export const csrf = meta?.dataset.csrf ?? "";
export const wide = matchMedia("(min-width: 68.75rem)");

// The one way in which text becomes elements: pieces of pages, drawn by our own server.
const policy = globalThis.trustedTypes?.createPolicy("yourturn", { createHTML: (html) => html, createScriptURL: (url) => (/^\/sw\.js\?build=\w+$/.test(url) ? url : null) });
export const script = (url) => (policy ? policy.createScriptURL(url) : url);
export function parse(html) {
  const made = document.createElement("template");
  made.innerHTML = policy ? policy.createHTML(html) : html;
  return made.content;
}

// One request that is lost, or that a server in trouble answers, is made again.
const AGAIN = 400;
async function fetched(url, signal) {
  const ask = () => fetch(url, { signal, cache: "no-store", headers: { Accept: "text/html" } });
  const first = await ask().catch((error) => { if (signal?.aborted || !navigator.onLine) throw error; });
  if (first && first.status < 500) return first;
  await new Promise((go) => setTimeout(go, AGAIN));
  return ask();
}
// A piece of a page; null where it is not there any more.
export async function part(url, signal) {
  const answer = await fetched(url, signal);
  if (answer.redirected && new URL(answer.url).pathname === "/login") { location.reload(); return null; }
  return answer.ok ? parse(await answer.text()) : null;
}

export function el(name, props = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

export const icon = (name) => parse(`<svg class="icon" aria-hidden="true"><use href="${$("use")?.getAttribute("href").split("#")[0] ?? ""}#${name}"/></svg>`);

// For those who listen: one sentence, politely.
export function say(text) {
  const live = $("#live");
  if (live) { live.textContent = ""; setTimeout(() => { live.textContent = text; }, 30); }
}

// What this device remembers of whoever is signed in, at this desk, since its last restore: an answer goes neither out in another
// name nor to another desk at this address. A browser that keeps nothing is no reason to stop.
const me = `yt:${meta?.dataset.me ?? ""}:`;
export const desk = meta?.dataset.desk ?? "";
export const mine = `${me}${desk}:`;
const here = new Map();
const raw = {
  get(key) { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
  set(key, value) { localStorage.setItem(key, JSON.stringify(value)); },
  drop(key) { try { localStorage.removeItem(key); } catch { /* not allowed */ } },
  keys(start) { try { return Object.keys(localStorage).filter((key) => key.startsWith(start)); } catch { return []; } },
};
export const keep = {
  get: (name, otherwise) => (here.has(name) ? here.get(name) : (raw.get(mine + name) ?? otherwise)),
  set(name, value) { try { raw.set(mine + name, value); here.delete(name); } catch { here.set(name, value); /* full, or not allowed: as long as the page is open */ } },
  drop(name) { here.delete(name); raw.drop(mine + name); },
  names: () => raw.keys(mine).map((key) => key.slice(mine.length)),
};
// What the same person left at other desks of this address, or here before a restore: shown and dropped, never used. (A key from
// before desks were told apart names none.)
export const elsewhere = {
  ...raw,
  list: () => raw.keys(me).filter((key) => !key.startsWith(mine)).map((key) => { const [, of = "", name] = key.slice(me.length).match(/^(?:(\w+\.\w+):)?(.*)/); return { key, of, name }; }),
};
for (const { key, name } of elsewhere.list()) if (!/^(outbox$|draft:)/.test(name)) raw.drop(key);

export const typing = (at) => Boolean(at?.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]"));

export const button = (words, run, look = "") => { const made = el("button", { className: `btn ${look}`, type: "button" }, words); made.addEventListener("click", run); return made; };

// A word in the corner, where it covers nothing that is read or written. One at a time; it goes by itself, unless somebody is
// at it, and never takes the focus.
const STAYS = 8000;
export function toast(words, ...acts) {
  const made = el("div", { className: "toast" }, el("p", {}, words));
  made.append(el("div", { className: "acts" }, button("Close", () => made.remove(), "plain"), ...acts));
  show(made);
  return made;
}
export function show(made) {
  const corner = $("#toasts");
  if (!corner) return;
  corner.replaceChildren(made);
  const go = () => { if (made.matches(":hover, :focus-within")) setTimeout(go, STAYS); else made.remove(); };
  setTimeout(go, STAYS);
}

// A strip above everything: at most one of a name. Words, then what can be done.
export function strip(name, words = "", ...acts) {
  const strips = $("#strips");
  if (!strips) return;
  const old = $(`[data-strip="${name}"]`, strips);
  if (old && old.firstChild.textContent === words) return;
  old?.remove();
  if (words) strips.append(el("div", { className: "strip", role: "status", "data-strip": name }, el("p", {}, words), ...acts));
}

// On a phone, what stands above the page moves it: for a moment a tap does nothing, since it was meant for what stood there.
const above = $(".above"), SETTLES = 400;
let height = 0, settling = 0;
if (above) new ResizeObserver(() => {
  const root = document.documentElement;
  if (height === above.offsetHeight) return;
  height = above.offsetHeight;
  root.style.setProperty("--above", `${height}px`);
  root.toggleAttribute("data-moved", true);
  clearTimeout(settling);
  settling = setTimeout(() => root.toggleAttribute("data-moved", false), SETTLES);
}).observe(above);

export function counts({ mine, all }) {
  if (mine === undefined) return;
  for (const at of $$("[data-waiting]")) { at.textContent = mine; at.dataset.n = mine; at.setAttribute("aria-label", `${mine} waiting`); }
  for (const at of $$(".seg [data-mine]")) at.textContent = mine;
  if (all !== undefined) for (const at of $$(".seg [data-all]")) at.textContent = all;
  document.title = (mine ? `(${mine}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  if (mine) navigator.setAppBadge?.(mine).catch(() => {}); else navigator.clearAppBadge?.().catch(() => {});
}
