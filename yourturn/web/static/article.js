// A question as a page, a pane or a sheet: updates its send button, reloads it, and closes it. As soon as any source reports that a
// question is closed, its buttons are removed.
import { $, $$, button, csrf, el, storage, fetchFragment, announce } from "./dom.js";
import { hasDraft, storedDraft, removeDraft, formContents, restoreDraft } from "./drafts.js";
import { openLatePage, rememberLate, inFlight, retryNow, queued } from "./outbox.js";
import { drawUnsent } from "./unsent.js";
import { formatTimes } from "./time.js";

export const setDisabled = (element, on) => (on ? element.setAttribute("aria-disabled", "true") : element.removeAttribute("aria-disabled"));

// The label of the send button: the chosen options, or what is missing.
export function updateSendButton(form) {
  for (const element of $$("button[data-missing]", form)) {
    const chosen = $$("input[name=option]:checked", form), need = $("[data-need]", form);
    const label = $("[data-echo]", element), names = formContents(form)?.names.join(", ") ?? "";
    const other = chosen.some((box) => box.value === "other") && !$("[name=other]", form).value.trim();
    const ready = need ? need.value.trim() !== "" : chosen.length > 0 && !other;
    setDisabled(element, !ready);
    label.textContent = !ready ? (other ? "Write what instead" : element.dataset.missing) : need || names.length > 40 ? "Send answer" : `Send “${names}”`;
  }
}

// The whole answer in words, so that a person can check it while it waits in the outbox.
export function answerText(form, by) {
  const verb = $("[data-echo]", by) ?? $("b", by), value = $("[data-need]", form)?.value.trim();
  const text = [$("[data-words]", form)?.dataset.words, ...$$("[name=text]", form).map((field) => field.value.trim())].filter(Boolean).join("\n");
  const first = by.hasAttribute("data-missing") ? value ?? formContents(form)?.names.join(", ") : "";
  const bare = [...(verb ?? by).childNodes].filter((node) => node.nodeName !== "KBD").map((node) => node.textContent).join("").trim();
  return [first ? `“${first}”` : bare, text && `“${text}”`].filter(Boolean).join("\n");
}

// Prepares new forms and rows. `copy`: the page comes from a cache, so results that this device has stored since are newer. Otherwise
// the server's page is newer.
export function activate(root, copy = false) {
  for (const form of $$("form[data-q]", root)) {
    if (!queued(form.dataset.q)) restoreDraft(form);
    updateSendButton(form);
    const result = form.dataset.answer && knownResult(form.dataset.q);
    if (result && copy) { closeForm(form, result); reloadForm(form); } else if (result) forgetClosed(form.dataset.q);
    showLeftover(form);
  }
  for (const row of $$(".row[data-id]:not(.over)", root)) { const result = knownResult(row.dataset.id); if (result && copy) closeRow(row, result); else if (result) forgetClosed(row.dataset.id); }
  formatTimes(root);
  drawUnsent();
}

export function showError(form, text, ...more) {
  const row = form.closest(".row");
  let element = $(".wrong", form);
  if (!element && row) { element = el("p", { className: "wrong", role: "alert" }); form.append(element); }
  if (!element) return;
  element.hidden = !text;
  element.replaceChildren(text, ...more);
}

// Replaces the buttons of a row by the result. Nothing else moves.
export function closeRow(row, result) {
  row.classList.add("over");
  row.classList.remove("picked");
  for (const element of $$(".pick, .right, .proof, .quick, .result", row)) element.remove();
  row.append(el("p", { className: "result" }, result));
}

// --- closed ---

// A closed question never opens again, so the stored result is true for every cached page.
const knownResult = (id) => storage.get("closed", []).find(([other]) => other === id)?.[1];
export function rememberClosed(id, result) {
  if (/^Q\d+$/.test(id)) storage.set("closed", [...storage.get("closed", []).filter(([other]) => other !== id), [id, result]].slice(-200));
}

// The server drew a question as open that is stored as closed: one of them is out of date. The next check decides.
function forgetClosed(id) {
  storage.set("closed", storage.get("closed", []).filter(([other]) => other !== id));
  dispatchEvent(new Event("yourturn:doubt"));
}

// Closes the form at once: the message replaces the buttons.
export function closeForm(form, message) {
  const bar = $(".answer", form);
  if (!bar || form.dataset.closed) return;
  form.dataset.closed = form.dataset.q;
  delete form.dataset.answer;
  for (const element of $$("input, textarea, .opt", form)) if (element.type !== "hidden") element.disabled = true;
  bar.replaceChildren(el("p", { className: "over-note", role: "status" }, message));
}

// Replaces the form by a new one from the server, if it is still on the page.
export async function reloadForm(form, more = "") {
  const id = form.dataset.q, how = form.closest("dialog") ? "sheet" : form.closest(".pane") ? "pane" : "article";
  const fragment = await fetchFragment(`/questions/${id}?as=${how}${more}`).catch(() => null);
  const fresh = fragment && $("form.q", fragment);
  if (!fresh || !form.isConnected) return null;
  const inside = form.contains(document.activeElement);
  form.replaceWith(fresh);
  activate(fresh.parentElement);
  if (inside) $(".h1", fresh)?.focus();
  return fresh;
}

// A draft for a question that is closed now: the person can keep it as a note or drop it.
function showLeftover(form) {
  const id = form.dataset.q, contents = !$(".answer, .leftover", form) && storedDraft(id);
  if (!contents) return;
  const { texts, options, names } = contents, text = [names?.join(", "), texts.value, texts.text].filter(Boolean).join("\n"), late = $("[name=note]", form), key = $("input[name=key]", form).value;
  if (late) { late.value ||= text; return; }  // the form can send it
  // The server shows a page about a complete late answer; a text alone can become a note.
  const whole = options.length || texts.value, body = new URLSearchParams(whole ? { key, say: "approved", ...texts } : { key, note: `Late answer to ${id}: ${text}`, do: "note" });
  if (whole) for (const option of options) body.append("option", option);
  const use = () => { rememberLate(id); openLatePage({ id, url: `/questions/${id}/${whole ? "answer" : "late"}`, body: body.toString() }); };
  const section = el("section", { className: "card leftover", "aria-label": "Not sent" }, el("header", {}, el("h2", {}, "Your answer was not sent")), el("p", { className: "mine" }, text),
    el("div", { className: "acts" }, button(whole ? "What now?" : "Keep it as a note", use, "go"), button("Drop it", () => { removeDraft(id); section.remove(); }, "plain")));
  ($(".q-body > .alert", form) ?? $(".q-top", form)).after(section);
}

// The question was answered, timed out or was withdrawn.
export async function questionClosed(id) {
  const row = $(`.list .row[data-id="${id}"]:not(.over)`), forms = $$(`form[data-q="${id}"]:has(.answer)`);
  if (!row && !forms.length) return;
  const fragment = await fetchFragment(`/questions/${id}?as=row`).catch(() => null);
  const message = fragment ? $(".result", fragment)?.textContent : "It is closed.";
  if (!message) return;  // it is still open
  if (fragment) rememberClosed(id, message);
  if (row && !row.classList.contains("over")) closeRow(row, message);
  if (queued(id)) retryNow();  // the server knows if it was this device's answer, whose reply was lost, or another one
  for (const form of forms.filter((one) => one.isConnected && !inFlight.has(id))) {
    const sheet = form.closest("dialog");
    if (sheet && !hasDraft(form)) { sheet.close(); continue; }
    closeForm(form, message);
    announce(message);
    reloadForm(form);
  }
}

for (const type of ["change", "yourturn:filled"]) addEventListener(type, (event) => { const form = event.target.closest?.("form[data-q]"); if (form) updateSendButton(form); });
// The time is over and the server cannot be reached: an answer would be too late.
addEventListener("yourturn:ended", ({ detail: element }) => { if (document.documentElement.dataset.live === "lost") closeTimedOut(element); });
addEventListener("yourturn:live", () => { if (document.documentElement.dataset.live === "lost") for (const element of $$("[data-ended]")) closeTimedOut(element); });
function closeTimedOut(element) {
  const form = element.closest("form[data-q]");
  if (form && element.hasAttribute("data-closes") && !queued(form.dataset.q)) closeForm(form, `The time is over. This page shows the state of ${form.dataset.task} when it is live again.`);
}
