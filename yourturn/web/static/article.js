// A question that is open, as a page, a pane or a sheet: what it holds, drawing it again, and closing it. A closed question has no
// live buttons: from the first word that it is over, whoever it comes from.
import { $, $$, button, csrf, el, keep, part, say } from "./dom.js";
import { begun, draft, forget, held, restore } from "./drafts.js";
import { again, choosing, flying, hurry, queued } from "./outbox.js";
import { draw } from "./unsent.js";
import { clocks } from "./time.js";

export const off = (at, on) => (on ? at.setAttribute("aria-disabled", "true") : at.removeAttribute("aria-disabled"));

// The send button repeats what is chosen, and says what is missing.
export function echo(form) {
  for (const at of $$("button[data-missing]", form)) {
    const chosen = $$("input[name=option]:checked", form), need = $("[data-need]", form);
    const label = $("[data-echo]", at), names = held(form)?.names.join(", ") ?? "";
    const other = chosen.some((box) => box.value === "other") && !$("[name=other]", form).value.trim();
    const ready = need ? need.value.trim() !== "" : chosen.length > 0 && !other;
    off(at, !ready);
    label.textContent = !ready ? (other ? "Write what instead" : at.dataset.missing) : need || names.length > 40 ? "Send answer" : `Send “${names}”`;
  }
}

// What is about to be sent, in words: whole, so that it can be checked while it waits.
export function in_words(form, by) {
  const verb = $("[data-echo]", by) ?? $("b", by), value = $("[data-need]", form)?.value.trim();
  const text = [$("[data-words]", form)?.dataset.words, ...$$("[name=text]", form).map((field) => field.value.trim())].filter(Boolean).join("\n");
  const first = by.hasAttribute("data-missing") ? value ?? held(form)?.names.join(", ") : "";
  const bare = [...(verb ?? by).childNodes].filter((node) => node.nodeName !== "KBD").map((node) => node.textContent).join("").trim();
  return [first ? `“${first}”` : bare, text && `“${text}”`].filter(Boolean).join("\n");
}

// `copy`: this was drawn some time ago. Then what was heard since counts; else the server's word does, which is newer than any.
export function wake(root, copy = false) {
  for (const form of $$("form[data-q]", root)) {
    if (!queued(form.dataset.q)) restore(form);
    echo(form);
    const known = form.dataset.answer && over_already(form.dataset.q);
    if (known && copy) { shut(form, known); refresh(form); } else if (known) reopened(form.dataset.q);
    left_over(form);
  }
  for (const row of $$(".row[data-id]:not(.over)", root)) { const known = over_already(row.dataset.id); if (known && copy) over(row, known); else if (known) reopened(row.dataset.id); }
  clocks(root);
  draw();
}

export function wrong(form, text, ...more) {
  const row = form.closest(".row");
  let at = $(".wrong", form);
  if (!at && row) { at = el("p", { className: "wrong", role: "alert" }); form.append(at); }
  if (!at) return;
  at.hidden = !text;
  at.replaceChildren(text, ...more);
}

// Where an answered question stood, its result stands now. Nothing else moves.
export function over(row, result) {
  row.classList.add("over");
  row.classList.remove("picked");
  for (const at of $$(".pick, .right, .proof, .quick, .result", row)) at.remove();
  row.append(el("p", { className: "result" }, result));
}

// --- closed ---

// A question never opens again: what this device has heard of it since is true of every old copy of a page.
const over_already = (id) => keep.get("closed", []).find(([other]) => other === id)?.[1];
export function remember(id, result) {
  if (/^Q\d+$/.test(id)) keep.set("closed", [...keep.get("closed", []).filter(([other]) => other !== id), [id, result]].slice(-200));
}

// Drawn as open after it was heard to be over: either that was wrong, or this was on its way already. The next check will tell.
function reopened(id) {
  keep.set("closed", keep.get("closed", []).filter(([other]) => other !== id));
  dispatchEvent(new Event("yourturn:doubt"));
}

// At once, with what is known: the bar says it in the place of its buttons.
export function shut(form, told) {
  const bar = $(".answer", form);
  if (!bar || form.dataset.closed) return;
  form.dataset.closed = form.dataset.q;
  delete form.dataset.answer;
  for (const at of $$("input, textarea, .opt", form)) if (at.type !== "hidden") at.disabled = true;
  bar.replaceChildren(el("p", { className: "over-note", role: "status" }, told));
}

// The question as it is now, where the old one stands; unless something else stands there by then.
export async function refresh(form, more = "") {
  const id = form.dataset.q, how = form.closest("dialog") ? "sheet" : form.closest(".pane") ? "pane" : "article";
  const found = await part(`/questions/${id}?as=${how}${more}`).catch(() => null);
  const fresh = found && $("form.q", found);
  if (!fresh || !form.isConnected) return null;
  const inside = form.contains(document.activeElement);
  form.replaceWith(fresh);
  wake(fresh.parentElement);
  if (inside) $(".h1", fresh)?.focus();
  return fresh;
}

// What somebody had written for a question that is closed now: shown, and kept if they like.
function left_over(form) {
  const id = form.dataset.q, given = !$(".answer, .leftover", form) && draft(id);
  if (!given) return;
  const { texts, options, names } = given, text = [names?.join(", "), texts.value, texts.text].filter(Boolean).join("\n"), late = $("[name=note]", form), key = $("input[name=key]", form).value;
  if (late) { late.value ||= text; return; }  // it can be sent from here
  // A whole answer has the page about late ones; words alone can be kept as a note.
  const whole = options.length || texts.value, body = new URLSearchParams(whole ? { key, say: "approved", ...texts } : { key, note: `Late answer to ${id}: ${text}`, do: "note" });
  if (whole) for (const option of options) body.append("option", option);
  const use = () => { choosing(id); again({ id, url: `/questions/${id}/${whole ? "answer" : "late"}`, body: body.toString() }); };
  const made = el("section", { className: "card leftover", "aria-label": "Not sent" }, el("header", {}, el("h2", {}, "Your answer was not sent")), el("p", { className: "mine" }, text),
    el("div", { className: "acts" }, button(whole ? "What now?" : "Keep it as a note", use, "go"), button("Drop it", () => { forget(id); made.remove(); }, "plain")));
  ($(".q-body > .alert", form) ?? $(".q-top", form)).after(made);
}

// Somebody answered, or time ran out, or it was taken off the desk.
export async function gone(id) {
  const row = $(`.list .row[data-id="${id}"]:not(.over)`), forms = $$(`form[data-q="${id}"]:has(.answer)`);
  if (!row && !forms.length) return;
  const found = await part(`/questions/${id}?as=row`).catch(() => null);
  const told = found ? $(".result", found)?.textContent : "It does not wait any more.";
  if (!told) return;  // it is open after all
  if (found) remember(id, told);
  if (row && !row.classList.contains("over")) over(row, told);
  if (queued(id)) hurry();  // by an answer from here whose reply was lost, or by somebody else: asked again, the server says which
  for (const form of forms.filter((one) => one.isConnected && !flying.has(id))) {
    const sheet = form.closest("dialog");
    if (sheet && !begun(form)) { sheet.close(); continue; }
    shut(form, told);
    say(told);
    refresh(form);
  }
}

for (const sort of ["change", "yourturn:filled"]) addEventListener(sort, (e) => { const form = e.target.closest?.("form[data-q]"); if (form) echo(form); });
// Where the time is over and nobody can be asked: an answer would be too late.
addEventListener("yourturn:ended", ({ detail: at }) => { if (document.documentElement.dataset.live === "lost") timed_out(at); });
addEventListener("yourturn:live", () => { if (document.documentElement.dataset.live === "lost") for (const at of $$("[data-ended]")) timed_out(at); });
function timed_out(at) {
  const form = at.closest("form[data-q]");
  if (form && at.hasAttribute("data-closes") && !queued(form.dataset.q)) shut(form, `The time is over. What became of ${form.dataset.task} is shown when this page is live again.`);
}
