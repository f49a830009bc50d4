// The list beside its pane: moving, opening, selecting. It never reorders by itself.
import { $, $$, part, say, wide } from "./dom.js";
import { wake } from "./answer.js";

export const list = $("[data-list]");
const rows = () => $$(".row h3 a", list ?? document.createElement("div"));

let loading = null;
export async function open(id, focus = false) {
  const pane = $("[data-pane]");
  loading?.abort();
  const mine = (loading = new AbortController());
  for (const row of $$(".row[aria-current]", list)) row.removeAttribute("aria-current");
  $(`.row[data-id="${id}"]`, list)?.setAttribute("aria-current", "true");
  pane.setAttribute("aria-busy", "true");
  try {
    const found = await part(`/questions/${id}?as=pane`, mine.signal);
    if (mine.signal.aborted) return;
    if (found) {
      pane.replaceChildren(found);
      pane.scrollTop = 0;
      wake(pane);
      const url = new URL(location.href);
      url.searchParams.set("at", id);
      url.searchParams.delete("sent");
      history.replaceState(null, "", url);
      if (focus) $(".h1", pane)?.focus();
    }
  } catch (error) {
    if (error.name !== "AbortError") say("Not loaded. Trying again when you are back.");
  } finally {
    if (loading === mine) pane.removeAttribute("aria-busy");
  }
}

export function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  const from = at >= 0 ? at : all.findIndex((a) => a.closest("[aria-current]"));
  const to = all[Math.max(0, Math.min(all.length - 1, from + step))];
  to.focus();
  to.closest(".row").scrollIntoView({ block: "nearest" });
  if (wide.matches && $("[data-pane]")) { clearTimeout(move.timer); move.timer = setTimeout(() => open(to.closest(".row").dataset.id), 80); }
}

export const current = () => document.activeElement?.closest?.(".row") ?? $(".row[aria-current]", list ?? undefined);

export function picked() {
  const boxes = list ? $$(".pick", list) : [];
  return boxes.filter((box) => box.checked);
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

if (list) {
  const choose = $("[data-select]", list);
  if (choose) {
    choose.hidden = false;
    choose.addEventListener("click", () => { list.dataset.select = list.dataset.select === "on" ? "off" : "on"; selection(); });
    $("[data-clear]", list).addEventListener("click", () => { for (const box of picked()) box.checked = false; list.dataset.select = "off"; selection(); });
    list.addEventListener("change", (e) => { if (e.target.classList.contains("pick")) { selection(); say(`${picked().length} selected`); } });
    selection();
  }
  list.addEventListener("click", (e) => {
    const link = e.target.closest(".row h3 a");
    if (!link || e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    if (list.dataset.select === "on") { e.preventDefault(); $(".pick", link.closest(".row"))?.click(); return; }
    if (!wide.matches || !$("[data-pane]")) return;
    e.preventDefault();
    open(link.closest(".row").dataset.id, e.detail === 0);
  });
  $("[data-newer]", list)?.addEventListener("click", () => location.assign(location.pathname + location.search.replace(/([?&])(at|sent)=[^&]*/g, "$1").replace(/[?&]+$/, "")));
}

const fresh = new Set();
export function newer(id) {
  const pill = list && $("[data-newer]", list);
  if (!pill || fresh.has(id) || $(`.row[data-id="${id}"]`, list)) return;
  fresh.add(id);
  pill.hidden = false;
  pill.textContent = fresh.size === 1 ? "1 new question" : `${fresh.size} new questions`;
}
export function older(id) {
  const pill = list && $("[data-newer]", list);
  if (!pill || !fresh.delete(id)) return;
  pill.hidden = fresh.size === 0;
  pill.textContent = fresh.size === 1 ? "1 new question" : `${fresh.size} new questions`;
}
