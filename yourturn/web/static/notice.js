// A question that arrives while a page is open. It opens as a sheet only on the page of its task and on an empty inbox. Elsewhere it
// shows as the pill above the list, the count, and one toast.
import { $, button, el, storage, fetchFragment, announce, showToast, isTextField } from "./dom.js";
import { activate } from "./article.js";
import { addNewer, openQuestion, reloadInbox } from "./list.js";

const noticedIds = () => storage.get("noticed", []);
const markNoticed = (id) => storage.set("noticed", [...noticedIds().filter((other) => other !== id), id].slice(-200));
const rowOf = (id) => $(`.list .row[data-id="${id}"]`);
const phone = matchMedia("(max-width: 47.99rem)");

export async function questionAsked(id) {
  if (rowOf(id)) return;
  const fragment = await fetchFragment(`/questions/${id}?as=toast`).catch(() => null);
  const element = fragment && $(".toast", fragment);
  if (!element || element.dataset.mine !== "yes") return;
  const empty = Boolean($("[data-empty]"));
  if (empty) await reloadInbox(); else addNewer(id);
  announce(element.dataset.say);
  if (element.dataset.loud !== "yes") return;
  if (document.visibilityState === "hidden") { notify(element); return; }
  if (noticedIds().includes(id)) return;
  markNoticed(id);
  if ((empty || $("[data-task].cols")?.dataset.task === element.dataset.task) && (await openSheet(id))) return;
  showQuietly(element);
}

// On a phone the pill is enough, if there is one; and a toast, which moves the page, waits until no field has the focus.
function showQuietly(element) {
  if (phone.matches && $("[data-newer]:not([hidden])")) return;
  if (phone.matches && isTextField(document.activeElement)) { addEventListener("focusout", () => setTimeout(() => showQuietly(element), 400), { once: true }); return; }
  if (element.dataset.gone) return;
  shownToasts.add(element);
  showToast(element);
  $("[data-later]", element).addEventListener("click", () => element.remove());
  $("[data-open]", element).addEventListener("click", (event) => { event.preventDefault(); element.remove(); openSheet(element.dataset.id, true); });
}
const shownToasts = new Set();
export function clearNotices(id) {
  for (const element of shownToasts) if (element.dataset.id === id) { element.dataset.gone = "yes"; element.remove(); shownToasts.delete(element); }
  closeNotifications(id);
}

// --- the sheet ---

const isIdle = () => !$("dialog[open], details.menu[open]") && !isTextField(document.activeElement) && !getSelection().toString();
// Opens the question over the page. False if it did not open.
async function openSheet(id, wanted = false) {
  const behind = $(".pane"), twin = behind && $(`form[data-q="${id}"]`, behind);
  if (!wanted && !isIdle()) return false;
  const fragment = await fetchFragment(`/questions/${id}?as=sheet`).catch(() => null);
  if (!fragment || $("dialog[open]") || (!wanted && !isIdle()) || !$("form[data-answer], .over-note", fragment)) return false;
  const inside = el("div", {}, fragment), element = el("dialog", { className: "sheet" }, inside);
  const close = button("✕", () => element.close(), "plain closer");
  close.setAttribute("aria-label", "Close");
  inside.append(close);
  element.setAttribute("aria-labelledby", $(".h1", inside).id);
  const before = document.activeElement;
  twin?.remove();  // one question, one form
  element.addEventListener("close", () => { element.remove(); if (twin) openQuestion(id); before?.focus?.(); });
  document.body.append(element);
  activate(element);
  // A tap or key that was meant for the page must neither answer nor close the sheet.
  element.inert = !wanted;
  element.showModal();
  if (!wanted) setTimeout(() => { element.inert = false; $(".h1", element)?.focus(); }, 600); else $(".h1", element)?.focus();
  return true;
}

// --- system notifications ---

async function notify(element) {
  const id = element.dataset.id;
  if (!globalThis.Notification || Notification.permission !== "granted" || noticedIds().includes(id)) return;
  markNoticed(id);
  const title = element.dataset.say.replace(/^New /, "").replace(/^./, (c) => c.toUpperCase());
  const options = { body: element.dataset.kind === "permission" ? "Asks before it acts." : element.dataset.title, tag: id, data: { url: `/questions/${id}` } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) { worker.showNotification(title, options); return; }
  const note = new Notification(title, options);
  note.onclick = () => { focus(); location.assign(options.data.url); };
}
async function closeNotifications(id) {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const note of (await worker?.getNotifications({ tag: id })) ?? []) note.close();
}
