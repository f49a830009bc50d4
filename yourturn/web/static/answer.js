// Sending an answer without leaving the page. Without this module the same forms are sent the plain way.
import { $, $$, counts, csrf, el, part, say, toast } from "./dom.js";
import { begun, forget, restore } from "./drafts.js";
import { again, OFFLINE, post, put, queued } from "./outbox.js";
import { clocks } from "./time.js";

const off = (button, on) => (on ? button.setAttribute("aria-disabled", "true") : button.removeAttribute("aria-disabled"));

// The send button repeats what is chosen, and says what is missing.
export function echo(form) {
  for (const button of $$("button[data-missing]", form)) {
    const chosen = $$("input[name=option]:checked", form), need = $("[data-need]", form);
    const label = $("[data-echo]", button);
    const other = chosen.some((box) => box.value === "other") && !$("[name=other]", form).value.trim();
    const ready = need ? need.value.trim() !== "" : chosen.length > 0 && !other;
    off(button, !ready);
    const names = chosen.map((box) => (box.value === "other" ? $("[name=other]", form).value.trim() : box.dataset.label)).join(", ");
    label.textContent = !ready ? (other ? "Write what instead" : button.dataset.missing) : need || names.length > 40 ? "Send answer" : `Send “${names}”`;
  }
}

export function wake(root) {
  for (const form of $$("form[data-q]", root)) { restore(form); echo(form); if (queued(form.dataset.q)) wrong(form, OFFLINE); }
  clocks(root);
}

function wrong(form, text, ...more) {
  const kept = text === OFFLINE, row = form.closest(".row");
  let at = $(".wrong", form);
  if (!at && row) { at = el("p", { className: "wrong", role: "alert" }); form.append(at); }
  if (!at) return;
  at.hidden = !text;
  at.classList.toggle("kept", kept);
  at.replaceChildren(text, ...more);
}

function sending(form, submitter, on) {
  for (const button of $$("button[type=submit]", form)) off(button, on);
  const label = submitter && ($("[data-echo]", submitter) ?? $("b", submitter));
  if (!label) return;
  if (on) { submitter.setAttribute("aria-busy", "true"); submitter.dataset.was = label.textContent; label.textContent = "Sending…"; }
  else { submitter.removeAttribute("aria-busy"); label.textContent = submitter.dataset.was ?? label.textContent; echo(form); }
}

addEventListener("submit", (e) => {
  const form = e.target, button = e.submitter;
  if (button?.getAttribute("aria-disabled") === "true") { e.preventDefault(); return; }
  if (!form.dataset.answer) return;
  const why = button?.dataset.why, text = $("[name=text]", form);
  if (why && text && !text.value.trim()) {
    e.preventDefault();
    text.closest("details")?.setAttribute("open", "");
    text.placeholder = why;
    text.focus();
    wrong(form, why);
    return;
  }
  e.preventDefault();
  send(form, button);
}, true);

async function send(form, button) {
  const id = form.dataset.answer, url = button?.getAttribute("formaction") ?? form.getAttribute("action");
  const body = new URLSearchParams(new FormData(form, button));
  body.set("csrf", csrf);
  const item = { id, url, body: body.toString() };
  // Asked now: the news that it is answered may be here before the answer to this, and take the form away.
  const place = { dialog: form.closest("dialog"), pane: form.closest(".pane"), inRow: form.closest(".row") };
  wrong(form, "");
  sending(form, button, true);
  let answer, data;
  try {
    answer = await post(url, body);
    data = await answer.json();
  } catch {
    put(item);
    sending(form, button, false);
    wrong(form, OFFLINE);
    form.closest(".row")?.classList.add("queued");
    say(OFFLINE);
    return;
  }
  if (answer.ok) { forget(form); done(place, id, data); return; }
  if (data.late) { forget(form); again(item); return; }
  sending(form, button, false);
  const told = data.error ?? {};
  const text = [told.message, told.hint].filter(Boolean).join(". ").replace(/\.\.$/, ".") + ".";
  if (answer.status === 401) wrong(form, "You were signed out. ", el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in again"), ". What you wrote is kept.");
  else wrong(form, text.replace(/\.\.$/, "."));
  say(text);
}

// Where an answered question stood, its result stands now. Nothing else moves.
export function over(row, result) {
  row.classList.add("over");
  row.classList.remove("picked", "queued");
  for (const at of $$(".pick, .right, .proof, .quick, .result", row)) at.remove();
  row.append(el("p", { className: "result" }, result));
}

async function done({ dialog, pane, inRow }, id, data) {
  counts({ mine: data.waiting });
  const row = $(`.row[data-id="${id}"]`);
  if (row) over(row, data.result ?? data.sent);
  const sent = `Sent. ${data.sent}`;
  say(data.next ? `${sent} Next: ${data.next}` : sent);
  dispatchEvent(new CustomEvent("yourturn:sent", { detail: { id, data } }));
  if (dialog) { dialog.close(); toast(sent); return; }
  if (pane) {
    const next = data.next && $(`.row[data-id="${data.next}"] h3 a`);
    const found = await part(`/questions/${id}?as=pane&sent=1`).catch(() => null);
    if (found) pane.replaceChildren(found);
    else pane.replaceChildren(el("div", { className: "empty" }, el("h2", {}, sent)));
    next?.focus({ preventScroll: true });
    return;
  }
  if (!inRow) location.assign(/^Q\d/.test(id) ? `/questions/${id}?sent=1` : `/inbox?sent=${id}`);
}

addEventListener("change", (e) => { const form = e.target.closest?.("form[data-q]"); if (form) echo(form); });
addEventListener("input", (e) => { const form = e.target.closest?.("form[data-q]"); if (form) { echo(form); wrong(form, ""); } });
addEventListener("click", async (e) => {
  const copy = e.target.closest("[data-copy]");
  if (copy) { try { await navigator.clipboard.writeText(copy.dataset.copy); say("Copied the digest"); } catch { /* it stands in the title */ } }
});
addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
  const form = e.target.closest?.("form[data-answer]"), first = form && $("[data-key=a]", form);
  if (first && begun(form)) form.requestSubmit(first);
});
addEventListener("yourturn:sent", (e) => { const row = e.detail.data && $(`.row[data-id="${e.detail.id}"]`); if (row) over(row, e.detail.data.result ?? e.detail.data.sent); });
wake(document);
