// The few things that every module needs.

export const $ = (what, root = document) => root.querySelector(what);
export const $$ = (what, root = document) => [...root.querySelectorAll(what)];

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

// A piece of a page; null where it is not there any more.
export async function part(url, signal) {
  const answer = await fetch(url, { signal, headers: { Accept: "text/html" } });
  if (answer.redirected && new URL(answer.url).pathname === "/login") { location.reload(); return null; }
  return answer.ok ? parse(await answer.text()) : null;
}

export function el(name, props = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

// For those who listen: one sentence, politely.
export function say(text) {
  const live = $("#live");
  if (live) { live.textContent = ""; setTimeout(() => { live.textContent = text; }, 30); }
}

// What this device remembers of whoever is signed in: nobody sends what somebody else has written here. A browser that keeps
// nothing is no reason to stop.
const mine = `yt:${meta?.dataset.me ?? ""}:`;
export const keep = {
  get(name, otherwise) { try { return JSON.parse(localStorage.getItem(mine + name)) ?? otherwise; } catch { return otherwise; } },
  set(name, value) { try { localStorage.setItem(mine + name, JSON.stringify(value)); } catch { /* full, or not allowed */ } },
  drop(name) { try { localStorage.removeItem(mine + name); } catch { /* not allowed */ } },
  names() { try { return Object.keys(localStorage).filter((n) => n.startsWith(mine)).map((n) => n.slice(mine.length)); } catch { return []; } },
};

export const typing = (at) => Boolean(at?.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]"));

// A word in the corner. It never takes the focus.
export function toast(words, ...acts) {
  const made = el("div", { className: "toast" }, el("p", {}, words));
  const row = el("div", { className: "acts" }, ...acts);
  const close = el("button", { className: "btn plain", type: "button" }, "Close");
  close.addEventListener("click", () => made.remove());
  row.prepend(close);
  made.append(row);
  show(made);
  return made;
}
export function show(made, most = 3) {
  const corner = $("#toasts");
  if (!corner) return;
  corner.append(made);
  while (corner.children.length > most) corner.firstElementChild.remove();
}

// A strip above everything: at most one of a name.
export function strip(name, ...inside) {
  const strips = $("#strips");
  if (!strips) return;
  $(`[data-strip="${name}"]`, strips)?.remove();
  if (inside.length) strips.append(el("div", { className: "strip", role: "status", "data-strip": name }, el("p", {}, ...inside)));
}

export function counts({ mine, all }) {
  if (mine === undefined) return;
  for (const at of $$("[data-waiting]")) { at.textContent = mine; at.dataset.n = mine; at.setAttribute("aria-label", `${mine} waiting`); }
  for (const at of $$(".seg [data-mine]")) at.textContent = mine;
  if (all !== undefined) for (const at of $$(".seg [data-all]")) at.textContent = all;
  document.title = (mine ? `(${mine}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  if (mine) navigator.setAppBadge?.(mine).catch(() => {}); else navigator.clearAppBadge?.().catch(() => {});
}
