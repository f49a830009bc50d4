// Sends an answer without leaving the page. Without this module the browser sends the same forms.
import { $, $$, updateCounts, announce, toast } from "./dom.js";
import { hasDraft, formContents, saveDraft } from "./drafts.js";
import { attempt, rememberLate, drop, put, queued, settled } from "./outbox.js";
import { updateSendButton, questionClosed, answerText, setDisabled, closeRow, reloadForm, rememberClosed, closeForm, activate, showError } from "./article.js";
import { change, drawUnsent } from "./unsent.js";
import { isCopy } from "./time.js";

function setSending(form, by, on) {
  for (const button of $$("button[type=submit]", form)) setDisabled(button, on);
  const label = by && ($("[data-echo]", by) ?? $("b", by));
  if (!label) return;
  if (on) { by.setAttribute("aria-busy", "true"); by.was = [...label.childNodes]; label.replaceChildren("Sending…"); }
  else { by.removeAttribute("aria-busy"); label.replaceChildren(...by.was); updateSendButton(form); }
}

addEventListener("submit", (event) => {
  const form = event.target, button = event.submitter;
  if (button?.getAttribute("aria-disabled") === "true") { event.preventDefault(); return; }
  if (!form.dataset.answer) { if (form.dataset.closed) event.preventDefault(); else if (form.dataset.q) rememberLate(form.dataset.q); return; }
  event.preventDefault();
  if (queued(form.dataset.answer)) return;
  const why = button?.dataset.why, text = $("[name=text]", form);
  if (why && text && !text.value.trim()) {
    text.closest("details")?.setAttribute("open", "");
    text.placeholder = why;
    text.focus();
    showError(form, why);
    return;
  }
  send(form, button ?? $("button[type=submit]", form));
}, true);

async function send(form, by) {
  const id = form.dataset.answer, url = by.getAttribute("formaction") ?? form.getAttribute("action");
  const body = new URLSearchParams(new FormData(form, by)), row = $(`.row[data-id="${id}"]`);
  body.delete("csrf");
  const title = form.dataset.title ?? $(".h1", form)?.textContent ?? (row && $("h3", row).textContent) ?? id;
  const item = { id, url, body: body.toString(), key: body.get("key"), words: answerText(form, by), title, draft: formContents(form) };
  // Read now: the event about the answer may arrive before the reply and replace the form.
  const place = { form, dialog: form.closest("dialog"), pane: form.closest(".pane"), inRow: form.closest(".row") };
  showError(form, "");
  setSending(form, by, true);
  put(item);
  const reply = await attempt(item);
  setSending(form, by, false);
  if (!reply) { if (queued(id)) { drawUnsent(); announce($(".unsent .why", form)?.textContent ?? "Not sent yet, trying again."); } return; }
  const { ok, status, data } = reply;
  if (ok) { done(place, id, data); return; }
  // The person may be on another question by now, and stays there.
  if (data.late || !form.isConnected) { settled(item, reply, form.isConnected && !place.dialog); return; }
  saveDraft(form);
  drop(id);
  const error = data.error ?? {}, text = `${[error.message, error.hint].filter(Boolean).join(". ")}.`.replace(/\.\.$/, ".");
  showError(form, text);
  announce(text);
  if (status === 404) closeForm(form, text);
  if (status === 412) { const fresh = await reloadForm(form); if (fresh) showError(fresh, text); }  // the task has changed since the page was drawn
}

async function done({ form, dialog, pane, inRow }, id, data) {
  updateCounts({ mine: data.waiting });
  const row = $(`.list .row[data-id="${id}"]`), result = data.result ?? data.sent, sent = `Sent. ${data.sent}`;
  rememberClosed(id, result);
  if (row) closeRow(row, result);
  announce(data.next ? `${sent} Next: ${data.next}` : sent);
  if (dialog) { dialog.close(); toast(sent); return; }
  if (pane) {
    if (!form.isConnected) { toast(sent); return; }  // the pane shows another question by now
    closeForm(form, sent);
    const next = data.next && $(`.row[data-id="${data.next}"] h3 a`);
    if (pane.contains(document.activeElement) || document.activeElement === document.body) next?.focus({ preventScroll: true });
    await reloadForm(form, `&sent=1${data.also ?? ""}`);
    return;
  }
  if (!inRow && form.isConnected) location.assign((/^Q\d/.test(id) ? `/questions/${id}?sent=1` : `/inbox?sent=${id}`) + (data.also ?? ""));
}

// An answer that was sent in the background, or came too late: closes its question wherever it is shown.
addEventListener("yourturn:settled", ({ detail: { item: { id }, ok, data } }) => {
  if (data.late) questionClosed(id);
  if (!ok) return;
  updateCounts({ mine: data.waiting });
  const row = $(`.list .row[data-id="${id}"]`), result = data.result ?? data.sent;
  rememberClosed(id, result);
  if (row) closeRow(row, result);
  for (const form of $$(`form[data-q="${id}"]`)) { closeForm(form, `Sent. ${data.sent}`); reloadForm(form, `&sent=1${data.also ?? ""}`); }
});

addEventListener("input", (event) => { const form = event.target.closest?.("form[data-q]"); if (form) { updateSendButton(form); showError(form, ""); } });
// Changing a queued answer takes it back, so that the form shows what will be sent.
for (const type of ["input", "change"]) addEventListener(type, (event) => { const form = event.target.closest?.("form[data-q][data-answer]"); if (form && event.target !== form && queued(form.dataset.answer)) change(form, true); });
addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) { try { await navigator.clipboard.writeText(copy.dataset.copy); announce("Copied the digest"); } catch { /* the title contains it too */ } }
});
addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest?.("form[data-q]"), first = form && $("[data-key=a]", form);
  if (first && (hasDraft(form) || !form.dataset.answer)) form.requestSubmit(first);
});
activate(document, isCopy);
