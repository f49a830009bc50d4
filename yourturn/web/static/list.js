// The list beside its pane: moving, opening, selecting. It never reorders by itself. What is marked is what is shown: from the
// first instant at which another row is opened, nothing of the question before can be answered.
import { $, $$, button, el, part, say, typing, wide } from "./dom.js";
import { wake } from "./article.js";

export let list = null;
const pane = () => $("[data-pane]");
const rows = () => (list ? $$(".row[data-id] h3 a", list) : []);
const row_of = (id) => list && $(`.row[data-id="${id}"]`, list);
export const marked = () => list && $(".row[aria-current]", list)?.dataset.id;

function mark(id) {
  for (const row of list ? $$(".row[aria-current]", list) : []) row.removeAttribute("aria-current");
  row_of(id)?.setAttribute("aria-current", "true");
}

let loading = null, later = 0;
export function open(id, focus = false, wait = 0) {
  const at = pane();
  if (!at) return;
  loading?.abort();
  clearTimeout(later);
  mark(id);
  const url = new URL(location.href);
  url.searchParams.set("at", id);
  url.searchParams.delete("sent");
  history.replaceState(null, "", url);
  at.inert = true;
  at.setAttribute("aria-busy", "true");
  at.replaceChildren(el("div", { className: "q-body bones", "aria-hidden": "true" }, el("i"), el("p", { className: "h1" }, title(id)), el("i"), el("i"), el("i")));
  at.scrollTop = 0;
  later = setTimeout(() => load(at, id, focus), wait);
}
const title = (id) => $("h3", row_of(id) ?? document)?.textContent ?? id;

async function load(at, id, focus) {
  const mine = (loading = new AbortController());
  const found = await part(`/questions/${id}?as=pane`, mine.signal).catch(() => null);
  if (mine.signal.aborted || loading !== mine) return;
  at.inert = false;
  at.removeAttribute("aria-busy");
  if (found) {
    at.replaceChildren(found);
    wake(at);
    if (focus) $(".h1", at)?.focus();
    return;
  }
  const again = button("Try again", () => open(id, true), "go");
  at.replaceChildren(el("div", { className: "empty", role: "alert", "data-unloaded": id }, el("h2", {}, `${id} is not loaded`), el("p", {}, title(id)), el("p", {}, navigator.onLine ? "The server did not answer." : "You are offline."), el("div", { className: "acts" }, again)));
  say(`${id} is not loaded`);
}
addEventListener("yourturn:live", () => { const at = $("[data-unloaded]"); if (at && document.documentElement.dataset.live === "live") open(at.dataset.unloaded); });

export function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  const from = at >= 0 ? at : all.findIndex((a) => a.closest("[aria-current]"));
  const to = all[Math.max(0, Math.min(all.length - 1, from + step))], row = to.closest(".row");
  to.focus();
  row.scrollIntoView({ block: "nearest" });
  if (wide.matches && pane() && row.dataset.id !== marked()) open(row.dataset.id, false, 80);
}

export const current = () => document.activeElement?.closest?.(".row[data-id]") ?? (list && $(".row[aria-current]", list));

export function picked() {
  return list ? $$(".pick", list).filter((box) => box.checked) : [];
}

function selection() {
  const some = picked(), bar = $(".pickbar", list);
  for (const box of $$(".pick", list)) box.closest(".row").classList.toggle("picked", box.checked);
  list.classList.toggle("selecting", some.length > 0 || list.dataset.select === "on");
  $(".n", bar).textContent = some.length;
  const go = $(".btn.go", bar);
  go.disabled = some.length === 0;
  go.textContent = some.length > 1 ? `Preview ${some.length} answers` : "Preview answer";
}

function begin() {
  list = $("[data-list]");
  fresh.clear();
  if (!list) return;
  const choose = $("[data-select]", list);
  if (choose) {
    choose.hidden = false;
    choose.addEventListener("click", () => { list.dataset.select = list.dataset.select === "on" ? "off" : "on"; selection(); });
    $("[data-clear]", list).addEventListener("click", () => { for (const box of picked()) box.checked = false; list.dataset.select = "off"; selection(); });
    list.addEventListener("change", (e) => { if (e.target.classList.contains("pick")) { selection(); say(`${picked().length} selected`); } });
    selection();
  }
  list.addEventListener("click", (e) => {
    const link = e.target.closest(".row[data-id] h3 a");
    if (!link || e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    if (list.dataset.select === "on") { e.preventDefault(); $(".pick", link.closest(".row"))?.click(); return; }
    if (!wide.matches || !pane()) return;
    e.preventDefault();
    open(link.closest(".row").dataset.id, e.detail === 0);
  });
  $("[data-newer]", list)?.addEventListener("click", () => location.assign(location.pathname + location.search.replace(/([?&])(at|sent)=[^&]*/g, "$1").replace(/[?&]+$/, "")));
}

// The list as it is now: for a page on which nothing waited, and one that somebody came back to. A question that is open in the
// pane stays there, with whatever is being done to it; a list is not taken away while somebody writes in it.
let drawing = null;
export function redraw() {
  drawing ??= (async () => {
    const old = $(".inbox"), found = old && (await part(location.pathname + location.search).catch(() => null));
    const now = found && $(".inbox", found);
    if (!now || !old.isConnected) return;
    if ($(".list", old).contains(document.activeElement) && typing(document.activeElement)) { addEventListener("focusout", () => setTimeout(redraw), { once: true }); return; }
    const open = $("[data-pane] form[data-answer]", old);
    if (!open) { old.replaceWith(now); begin(); wake(now); return; }
    $(".list", old).replaceWith($(".list", now));
    begin();
    mark(open.dataset.q);
    wake($(".list", old));
  })().finally(() => { drawing = null; });
  return drawing;
}

const fresh = new Set();
function pill() {
  const at = list && $("[data-newer]", list);
  if (!at) return;
  at.hidden = fresh.size === 0;
  at.textContent = fresh.size === 1 ? "1 new question" : `${fresh.size} new questions`;
}
export function newer(id) { if (list && !row_of(id)) { fresh.add(id); pill(); } }
export function older(id) { if (fresh.delete(id)) pill(); }
begin();
