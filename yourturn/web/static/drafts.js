// Drafts of answers: they survive a reload, a restart of the server and a closed tab. An answer that is sent moves to the outbox.
import { $$, otherDesks, storage } from "./dom.js";

const WEEK = 7 * 86400e3;
const draftKey = (form) => `draft:${form.dataset.q ?? form.dataset.answer}`;

// The contents of a form, and writing them back.
export function formContents(form) {
  const texts = Object.fromEntries($$("[data-draft]", form).filter((field) => field.value.trim()).map((field) => [field.name, field.value]));
  const boxes = $$("input[name=option]:checked", form), options = boxes.map((box) => box.value);
  const names = boxes.map((box) => (box.value === "other" ? texts.other : box.dataset.label)).filter(Boolean);
  return Object.keys(texts).length || options.length ? { texts, options, names } : null;
}
export function fillForm(form, contents) {
  for (const field of $$("[data-draft]", form)) {
    field.value = contents?.texts[field.name] ?? "";
    if (field.value) field.closest("details")?.setAttribute("open", "");
  }
  for (const box of $$("input[name=option]", form)) box.checked = Boolean(contents?.options.includes(box.value));
}

export function restoreDraft(form) {
  const contents = storage.get(draftKey(form));
  if (!contents || isExpired(contents)) return;
  const current = formContents(form);  // from the server, with an error beside it
  if (!current) fillForm(form, contents);
}
export function saveDraft(form) {
  const contents = formContents(form);
  if (contents) storage.set(draftKey(form), { at: Date.now(), ...contents });
  else storage.drop(draftKey(form));
}

export const removeDraft = (id) => storage.drop(`draft:${id}`);
export const storedDraft = (id) => storage.get(`draft:${id}`);
export const hasDraft = (form) => Boolean(storage.get(draftKey(form)));

for (const type of ["input", "change"]) addEventListener(type, (event) => { const form = event.target.closest?.("form[data-q][data-answer]"); if (form) saveDraft(form); });
const isExpired = (contents) => Date.now() - (contents?.at ?? 0) > WEEK;
for (const name of storage.names()) if (name.startsWith("draft:") && isExpired(storage.get(name))) storage.drop(name);
for (const { key, name } of otherDesks.list()) if (name.startsWith("draft:") && isExpired(otherDesks.get(key))) otherDesks.drop(key);
