// What somebody has begun to write survives a reload, a restart and a closed tab. Once it is sent it is no draft any more: then
// it is in the outbox, and nowhere else.
import { $$, elsewhere, keep } from "./dom.js";

const WEEK = 7 * 86400e3;
const home = (form) => `draft:${form.dataset.q ?? form.dataset.answer}`;

// What a form holds, and back.
export function held(form) {
  const texts = Object.fromEntries($$("[data-draft]", form).filter((f) => f.value.trim()).map((f) => [f.name, f.value]));
  const boxes = $$("input[name=option]:checked", form), options = boxes.map((box) => box.value);
  const names = boxes.map((box) => (box.value === "other" ? texts.other : box.dataset.label)).filter(Boolean);
  return Object.keys(texts).length || options.length ? { texts, options, names } : null;
}
export function fill(form, found) {
  for (const field of $$("[data-draft]", form)) {
    field.value = found?.texts[field.name] ?? "";
    if (field.value) field.closest("details")?.setAttribute("open", "");
  }
  for (const box of $$("input[name=option]", form)) box.checked = Boolean(found?.options.includes(box.value));
}

export function restore(form) {
  const found = keep.get(home(form));
  if (!found || old(found)) return;
  const given = held(form);  // the server's own: what was wrong with it is said beside it
  if (!given) fill(form, found);
}
export function save(form) {
  const found = held(form);
  if (found) keep.set(home(form), { at: Date.now(), ...found });
  else keep.drop(home(form));
}

export const forget = (id) => keep.drop(`draft:${id}`);
export const draft = (id) => keep.get(`draft:${id}`);
export const begun = (form) => Boolean(keep.get(home(form)));

for (const sort of ["input", "change"]) addEventListener(sort, (e) => { const form = e.target.closest?.("form[data-q][data-answer]"); if (form) save(form); });
const old = (found) => Date.now() - (found?.at ?? 0) > WEEK;
for (const name of keep.names()) if (name.startsWith("draft:") && old(keep.get(name))) keep.drop(name);
for (const { key, name } of elsewhere.list()) if (name.startsWith("draft:") && old(elsewhere.get(key))) elsewhere.drop(key);
