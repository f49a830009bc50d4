// The list of the inbox and its pane: moving, opening, selecting. The list never reorders by itself. The marked row is the one in the
// pane: as soon as another row is opened, the question before cannot be answered any more.
import { $, $$, button, el, fetchFragment, announce, isTextField, wide } from "./dom.js";
import { activate } from "./article.js";

export let list = null;
const pane = () => $("[data-pane]");
const rows = () => (list ? $$(".row[data-id] h3 a", list) : []);
const rowOf = (id) => list && $(`.row[data-id="${id}"]`, list);
export const markedId = () => list && $(".row[aria-current]", list)?.dataset.id;

function mark(id) {
  for (const row of list ? $$(".row[aria-current]", list) : []) row.removeAttribute("aria-current");
  rowOf(id)?.setAttribute("aria-current", "true");
}

let loading = null, later = 0;
export function openQuestion(id, focus = false, wait = 0) {
  const container = pane();
  if (!container) return;
  loading?.abort();
  clearTimeout(later);
  mark(id);
  const url = new URL(location.href);
  url.searchParams.set("at", id);
  url.searchParams.delete("sent");
  history.replaceState(null, "", url);
  container.inert = true;
  container.setAttribute("aria-busy", "true");
  container.replaceChildren(el("div", { className: "q-body bones", "aria-hidden": "true" }, el("i"), el("p", { className: "h1" }, title(id)), el("i"), el("i"), el("i")));
  container.scrollTop = 0;
  later = setTimeout(() => load(container, id, focus), wait);
}
const title = (id) => $("h3", rowOf(id) ?? document)?.textContent ?? id;

async function load(container, id, focus) {
  const controller = (loading = new AbortController());
  const fragment = await fetchFragment(`/questions/${id}?as=pane`, controller.signal).catch(() => null);
  if (controller.signal.aborted || loading !== controller) return;
  container.inert = false;
  container.removeAttribute("aria-busy");
  if (fragment) {
    container.replaceChildren(fragment);
    activate(container);
    if (focus) $(".h1", container)?.focus();
    return;
  }
  const again = button("Try again", () => openQuestion(id, true), "go");
  container.replaceChildren(el("div", { className: "empty", role: "alert", "data-unloaded": id }, el("h2", {}, `${id} is not loaded`), el("p", {}, title(id)), el("p", {}, navigator.onLine ? "The server did not answer." : "You are offline."), el("div", { className: "acts" }, again)));
  announce(`${id} is not loaded`);
}
addEventListener("yourturn:live", () => { const failed = $("[data-unloaded]"); if (failed && document.documentElement.dataset.live === "live") openQuestion(failed.dataset.unloaded); });

export function move(step) {
  const all = rows();
  if (!all.length) return;
  const index = all.indexOf(document.activeElement);
  const from = index >= 0 ? index : all.findIndex((a) => a.closest("[aria-current]"));
  const to = all[Math.max(0, Math.min(all.length - 1, from + step))], row = to.closest(".row");
  to.focus();
  row.scrollIntoView({ block: "nearest" });
  if (wide.matches && pane() && row.dataset.id !== markedId()) openQuestion(row.dataset.id, false, 80);
}

export const currentRow = () => document.activeElement?.closest?.(".row[data-id]") ?? (list && $(".row[aria-current]", list));

export function selectedBoxes() {
  return list ? $$(".pick", list).filter((box) => box.checked) : [];
}

function selection() {
  const some = selectedBoxes(), bar = $(".pickbar", list);
  for (const box of $$(".pick", list)) box.closest(".row").classList.toggle("picked", box.checked);
  list.classList.toggle("selecting", some.length > 0 || list.dataset.select === "on");
  $(".n", bar).textContent = some.length;
  const go = $(".btn.go", bar);
  go.disabled = some.length === 0;
  go.textContent = some.length > 1 ? `Preview ${some.length} answers` : "Preview answer";
}

function initList() {
  list = $("[data-list]");
  newIds.clear();
  if (!list) return;
  const choose = $("[data-select]", list);
  if (choose) {
    choose.hidden = false;
    choose.addEventListener("click", () => { list.dataset.select = list.dataset.select === "on" ? "off" : "on"; selection(); });
    $("[data-clear]", list).addEventListener("click", () => { for (const box of selectedBoxes()) box.checked = false; list.dataset.select = "off"; selection(); });
    list.addEventListener("change", (event) => { if (event.target.classList.contains("pick")) { selection(); announce(`${selectedBoxes().length} selected`); } });
    selection();
  }
  list.addEventListener("click", (event) => {
    const link = event.target.closest(".row[data-id] h3 a");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    if (list.dataset.select === "on") { event.preventDefault(); $(".pick", link.closest(".row"))?.click(); return; }
    if (!wide.matches || !pane()) return;
    event.preventDefault();
    openQuestion(link.closest(".row").dataset.id, event.detail === 0);
  });
  $("[data-newer]", list)?.addEventListener("click", () => location.assign(location.pathname + location.search.replace(/([?&])(at|sent)=[^&]*/g, "$1").replace(/[?&]+$/, "")));
}

// Reloads the list: of an empty inbox, and of a page that was left and is shown again. A question in the pane stays there with its
// draft; the list is not replaced while a person types in it.
let drawing = null;
export function reloadInbox() {
  drawing ??= (async () => {
    const old = $(".inbox"), fragment = old && (await fetchFragment(location.pathname + location.search).catch(() => null));
    const now = fragment && $(".inbox", fragment);
    if (!now || !old.isConnected) return;
    if ($(".list", old).contains(document.activeElement) && isTextField(document.activeElement)) { addEventListener("focusout", () => setTimeout(reloadInbox), { once: true }); return; }
    const form = $("[data-pane] form[data-answer]", old);
    if (!form) { old.replaceWith(now); initList(); activate(now); return; }
    $(".list", old).replaceWith($(".list", now));
    initList();
    mark(form.dataset.q);
    activate($(".list", old));
  })().finally(() => { drawing = null; });
  return drawing;
}

const newIds = new Set();
function updatePill() {
  const pill = list && $("[data-newer]", list);
  if (!pill) return;
  pill.hidden = newIds.size === 0;
  pill.textContent = newIds.size === 1 ? "1 new question" : `${newIds.size} new questions`;
}
export function addNewer(id) { if (list && !rowOf(id)) { newIds.add(id); updatePill(); } }
export function removeNewer(id) { if (newIds.delete(id)) updatePill(); }
initList();
