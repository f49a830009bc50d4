// Helpers of all modules: queries, elements, fetching fragments, storage, toasts, counts.

export const $ = (what, root = document) => root.querySelector(what);
export const $$ = (what, root = document) => [...root.querySelectorAll(what)];
// True if the element takes up space: the pane does not on a narrow screen.
export const isVisible = (element) => Boolean(element?.getClientRects().length);

const meta = $("meta[name=yourturn]");
export const boot = meta?.content ?? "";
export const csrf = meta?.dataset.csrf ?? "";
export const wide = matchMedia("(min-width: 68.75rem)");

// Trusted types: only this function parses HTML, and only our own server's.
const policy = globalThis.trustedTypes?.createPolicy("yourturn", { createHTML: (html) => html, createScriptURL: (url) => (/^\/sw\.js\?build=\w+$/.test(url) ? url : null) });
export const trustedScriptURL = (url) => (policy ? policy.createScriptURL(url) : url);
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}

// Repeats a request once if it was lost or answered with a server error. Milliseconds until then:
const RETRY_DELAY = 400;
async function fetchWithRetry(url, signal) {
  const request = () => fetch(url, { signal, cache: "no-store", headers: { Accept: "text/html" } });
  const first = await request().catch((error) => { if (signal?.aborted || !navigator.onLine) throw error; });
  if (first && first.status < 500) return first;
  await new Promise((go) => setTimeout(go, RETRY_DELAY));
  return request();
}
// A fragment of a page; null if it does not exist any more.
export async function fetchFragment(url, signal) {
  const response = await fetchWithRetry(url, signal);
  if (response.redirected && new URL(response.url).pathname === "/login") { location.reload(); return null; }
  return response.ok ? parse(await response.text()) : null;
}

export function el(name, props = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) key in element ? (element[key] = value) : element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export const icon = (name) => parse(`<svg class="icon" aria-hidden="true"><use href="${$("use")?.getAttribute("href").split("#")[0] ?? ""}#${name}"/></svg>`);

// Announces one sentence to screen readers.
export function announce(text) {
  const live = $("#live");
  if (live) { live.textContent = ""; setTimeout(() => { live.textContent = text; }, 30); }
}

// Storage of this device, per user, desk and restore of the desk: an answer must not be sent as another user or to another desk at
// this address. Works in memory if the browser stores nothing.
const userPrefix = `yt:${meta?.dataset.me ?? ""}:`;
export const desk = meta?.dataset.desk ?? "";
export const storagePrefix = `${userPrefix}${desk}:`;
const memory = new Map();
const localStore = {
  get(key) { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
  set(key, value) { localStorage.setItem(key, JSON.stringify(value)); },
  drop(key) { try { localStorage.removeItem(key); } catch { /* not allowed */ } },
  keys(start) { try { return Object.keys(localStorage).filter((key) => key.startsWith(start)); } catch { return []; } },
};
export const storage = {
  get: (name, otherwise) => (memory.has(name) ? memory.get(name) : (localStore.get(storagePrefix + name) ?? otherwise)),
  set(name, value) { try { localStore.set(storagePrefix + name, value); memory.delete(name); } catch { memory.set(name, value); /* full or not allowed: keeps it while the page is open */ } },
  drop(name) { memory.delete(name); localStore.drop(storagePrefix + name); },
  names: () => localStore.keys(storagePrefix).map((key) => key.slice(storagePrefix.length)),
};
// What the same user stored at other desks of this address, or here before a restore: it is shown and can be dropped, never sent.
// (Keys of old versions name no desk.)
export const otherDesks = {
  ...localStore,
  list: () => localStore.keys(userPrefix).filter((key) => !key.startsWith(storagePrefix)).map((key) => { const [, of = "", name] = key.slice(userPrefix.length).match(/^(?:(\w+\.\w+):)?(.*)/); return { key, of, name }; }),
};
for (const { key, name } of otherDesks.list()) if (!/^(outbox$|draft:)/.test(name)) localStore.drop(key);

export const isTextField = (element) => Boolean(element?.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]"));

export const button = (label, run, style = "") => { const element = el("button", { className: `btn ${style}`, type: "button" }, label); element.addEventListener("click", run); return element; };

// A toast in the corner, where it covers no text and no field. One at a time; it disappears by itself unless it has the pointer or the
// focus, and never takes the focus.
const TOAST_TIME = 8000;
export function toast(text, ...actions) {
  const element = el("div", { className: "toast" }, el("p", {}, text));
  element.append(el("div", { className: "acts" }, button("Close", () => element.remove(), "plain"), ...actions));
  showToast(element);
  return element;
}
export function showToast(element) {
  const corner = $("#toasts");
  if (!corner) return;
  corner.replaceChildren(element);
  const expire = () => { if (element.matches(":hover, :focus-within")) setTimeout(expire, TOAST_TIME); else element.remove(); };
  setTimeout(expire, TOAST_TIME);
}

// A strip above the page, at most one of each name; no text removes it.
export function strip(name, text = "", ...actions) {
  const strips = $("#strips");
  if (!strips) return;
  const old = $(`[data-strip="${name}"]`, strips);
  if (old && old.firstChild.textContent === text) return;
  old?.remove();
  if (text) strips.append(el("div", { className: "strip", role: "status", "data-strip": name }, el("p", {}, text), ...actions));
}

// On a phone a toast or strip moves the page. Taps are ignored for a moment, because they were meant for what was there before.
const banner = $(".above"), SETTLE_TIME = 400;
let height = 0, settleTimer = 0;
if (banner) new ResizeObserver(() => {
  const root = document.documentElement;
  if (height === banner.offsetHeight) return;
  height = banner.offsetHeight;
  root.style.setProperty("--above", `${height}px`);
  root.toggleAttribute("data-moved", true);
  clearTimeout(settleTimer);
  settleTimer = setTimeout(() => root.toggleAttribute("data-moved", false), SETTLE_TIME);
}).observe(banner);

export function updateCounts({ mine, all }) {
  if (mine === undefined) return;
  for (const element of $$("[data-waiting]")) { element.textContent = mine; element.dataset.n = mine; element.setAttribute("aria-label", `${mine} waiting`); }
  for (const element of $$(".seg [data-mine]")) element.textContent = mine;
  if (all !== undefined) for (const element of $$(".seg [data-all]")) element.textContent = all;
  document.title = (mine ? `(${mine}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  if (mine) navigator.setAppBadge?.(mine).catch(() => {}); else navigator.clearAppBadge?.().catch(() => {});
}
