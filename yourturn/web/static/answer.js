// Sending an answer without leaving the page. Without this module the same forms are sent the plain way.
import { $, $$, counts, say, toast } from "./dom.js";
import { begun, held, save } from "./drafts.js";
import { attempt, choosing, drop, put, queued, settled } from "./outbox.js";
import { echo, gone, in_words, off, over, refresh, remember, shut, wake, wrong } from "./article.js";
import { change, draw } from "./unsent.js";
import { copied } from "./time.js";

function sending(form, by, on) {
  for (const button of $$("button[type=submit]", form)) off(button, on);
  const label = by && ($("[data-echo]", by) ?? $("b", by));
  if (!label) return;
  if (on) { by.setAttribute("aria-busy", "true"); by.was = [...label.childNodes]; label.replaceChildren("Sending…"); }
  else { by.removeAttribute("aria-busy"); label.replaceChildren(...by.was); echo(form); }
}

addEventListener("submit", (e) => {
  const form = e.target, button = e.submitter;
  if (button?.getAttribute("aria-disabled") === "true") { e.preventDefault(); return; }
  if (!form.dataset.answer) { if (form.dataset.closed) e.preventDefault(); else if (form.dataset.q) choosing(form.dataset.q); return; }
  e.preventDefault();
  if (queued(form.dataset.answer)) return;
  const why = button?.dataset.why, text = $("[name=text]", form);
  if (why && text && !text.value.trim()) {
    text.closest("details")?.setAttribute("open", "");
    text.placeholder = why;
    text.focus();
    wrong(form, why);
    return;
  }
  send(form, button ?? $("button[type=submit]", form));
}, true);

async function send(form, by) {
  const id = form.dataset.answer, url = by.getAttribute("formaction") ?? form.getAttribute("action");
  const body = new URLSearchParams(new FormData(form, by)), row = $(`.row[data-id="${id}"]`);
  body.delete("csrf");
  const title = form.dataset.title ?? $(".h1", form)?.textContent ?? (row && $("h3", row).textContent) ?? id;
  const item = { id, url, body: body.toString(), key: body.get("key"), words: in_words(form, by), title, draft: held(form) };
  // Asked now: the news that it is answered may be here before the answer to this, and take the form away.
  const place = { form, dialog: form.closest("dialog"), pane: form.closest(".pane"), inRow: form.closest(".row") };
  wrong(form, "");
  sending(form, by, true);
  put(item);
  const found = await attempt(item);
  sending(form, by, false);
  if (!found) { if (queued(id)) { draw(); say($(".unsent .why", form)?.textContent ?? "Not sent yet, trying again."); } return; }
  const { ok, status, data } = found;
  if (ok) { done(place, id, data); return; }
  // Wherever the person is by now, they stay there.
  if (data.late || !form.isConnected) { settled(item, found, form.isConnected && !place.dialog); return; }
  save(form);
  drop(id);
  const told = data.error ?? {}, text = `${[told.message, told.hint].filter(Boolean).join(". ")}.`.replace(/\.\.$/, ".");
  wrong(form, text);
  say(text);
  if (status === 404) shut(form, text);
  if (status === 412) { const fresh = await refresh(form); if (fresh) wrong(fresh, text); }  // it acted on what the page showed, and that is old
}

async function done({ form, dialog, pane, inRow }, id, data) {
  counts({ mine: data.waiting });
  const row = $(`.list .row[data-id="${id}"]`), result = data.result ?? data.sent, sent = `Sent. ${data.sent}`;
  remember(id, result);
  if (row) over(row, result);
  say(data.next ? `${sent} Next: ${data.next}` : sent);
  if (dialog) { dialog.close(); toast(sent); return; }
  if (pane) {
    if (!form.isConnected) { toast(sent); return; }  // another question is read there by now
    shut(form, sent);
    const next = data.next && $(`.row[data-id="${data.next}"] h3 a`);
    if (pane.contains(document.activeElement) || document.activeElement === document.body) next?.focus({ preventScroll: true });
    await refresh(form, `&sent=1${data.also ?? ""}`);
    return;
  }
  if (!inRow && form.isConnected) location.assign((/^Q\d/.test(id) ? `/questions/${id}?sent=1` : `/inbox?sent=${id}`) + (data.also ?? ""));
}

// What was sent in the background, or came too late: its question is closed where it is shown.
addEventListener("yourturn:settled", ({ detail: { item: { id }, ok, data } }) => {
  if (data.late) gone(id);
  if (!ok) return;
  counts({ mine: data.waiting });
  const row = $(`.list .row[data-id="${id}"]`), result = data.result ?? data.sent;
  remember(id, result);
  if (row) over(row, result);
  for (const form of $$(`form[data-q="${id}"]`)) { shut(form, `Sent. ${data.sent}`); refresh(form, `&sent=1${data.also ?? ""}`); }
});

addEventListener("input", (e) => { const form = e.target.closest?.("form[data-q]"); if (form) { echo(form); wrong(form, ""); } });
// To change what is queued is to take it back: what is shown is what will be sent.
for (const sort of ["input", "change"]) addEventListener(sort, (e) => { const form = e.target.closest?.("form[data-q][data-answer]"); if (form && e.target !== form && queued(form.dataset.answer)) change(form, true); });
addEventListener("click", async (e) => {
  const copy = e.target.closest("[data-copy]");
  if (copy) { try { await navigator.clipboard.writeText(copy.dataset.copy); say("Copied the digest"); } catch { /* it stands in the title */ } }
});
addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
  const form = e.target.closest?.("form[data-q]"), first = form && $("[data-key=a]", form);
  if (first && (begun(form) || !form.dataset.answer)) form.requestSubmit(first);
});
wake(document, copied);
