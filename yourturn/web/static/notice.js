// A question that arrives while a page is open. Nobody is interrupted: it opens by itself only where its own task is looked at, and
// where the inbox was empty. Elsewhere it is the pill, the count, and one quiet word in the corner.
import { $, button, el, keep, part, say, show, typing } from "./dom.js";
import { wake } from "./article.js";
import { newer, open, redraw } from "./list.js";

const seen = () => keep.get("noticed", []);
const noticed = (id) => keep.set("noticed", [...seen().filter((other) => other !== id), id].slice(-200));
const row_of = (id) => $(`.list .row[data-id="${id}"]`);
const phone = matchMedia("(max-width: 47.99rem)");

export async function arrived(id) {
  if (row_of(id)) return;
  const found = await part(`/questions/${id}?as=toast`).catch(() => null);
  const made = found && $(".toast", found);
  if (!made || made.dataset.mine !== "yes") return;
  const empty = Boolean($("[data-empty]"));
  if (empty) await redraw(); else newer(id);
  say(made.dataset.say);
  if (made.dataset.loud !== "yes") return;
  if (document.visibilityState === "hidden") { notify(made); return; }
  if (seen().includes(id)) return;
  noticed(id);
  if ((empty || $("[data-task].cols")?.dataset.task === made.dataset.task) && (await sheet(id))) return;
  quiet(made);
}

// Where there is a pill, that says it on a phone; and while somebody writes there, or presses a button next, nothing moves.
function quiet(made) {
  if (phone.matches && $("[data-newer]:not([hidden])")) return;
  if (phone.matches && typing(document.activeElement)) { addEventListener("focusout", () => setTimeout(() => quiet(made), 400), { once: true }); return; }
  if (made.dataset.gone) return;
  waiting.add(made);
  show(made);
  $("[data-later]", made).addEventListener("click", () => made.remove());
  $("[data-open]", made).addEventListener("click", (e) => { e.preventDefault(); made.remove(); sheet(made.dataset.id, true); });
}
const waiting = new Set();
export function cleared(id) {
  for (const made of waiting) if (made.dataset.id === id) { made.dataset.gone = "yes"; made.remove(); waiting.delete(made); }
  unnotify(id);
}

// --- the sheet ---

const free = () => !$("dialog[open], details.menu[open]") && !typing(document.activeElement) && !getSelection().toString();
// Did it open?
async function sheet(id, wanted = false) {
  const behind = $(".pane"), twin = behind && $(`form[data-q="${id}"]`, behind);
  if (!wanted && !free()) return false;
  const found = await part(`/questions/${id}?as=sheet`).catch(() => null);
  if (!found || $("dialog[open]") || (!wanted && !free()) || !$("form[data-answer], .over-note", found)) return false;
  const inside = el("div", {}, found), made = el("dialog", { className: "sheet" }, inside);
  const close = button("✕", () => made.close(), "plain closer");
  close.setAttribute("aria-label", "Close");
  inside.append(close);
  made.setAttribute("aria-labelledby", $(".h1", inside).id);
  const before = document.activeElement;
  twin?.remove();  // one question, one form
  made.addEventListener("close", () => { made.remove(); if (twin) open(id); before?.focus?.(); });
  document.body.append(made);
  wake(made);
  // A tap or a key that was meant for the page must neither answer nor close what came up under it.
  made.inert = !wanted;
  made.showModal();
  if (!wanted) setTimeout(() => { made.inert = false; $(".h1", made)?.focus(); }, 600); else $(".h1", made)?.focus();
  return true;
}

// --- the system's own notices ---

async function notify(made) {
  const id = made.dataset.id;
  if (!globalThis.Notification || Notification.permission !== "granted" || seen().includes(id)) return;
  noticed(id);
  const title = made.dataset.say.replace(/^New /, "").replace(/^./, (c) => c.toUpperCase());
  const options = { body: made.dataset.kind === "permission" ? "Asks before it acts." : made.dataset.title, tag: id, data: { url: `/questions/${id}` } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) { worker.showNotification(title, options); return; }
  const note = new Notification(title, options);
  note.onclick = () => { focus(); location.assign(options.data.url); };
}
async function unnotify(id) {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const note of (await worker?.getNotifications({ tag: id })) ?? []) note.close();
}
