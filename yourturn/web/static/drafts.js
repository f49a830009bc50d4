// What somebody has begun to write survives a reload, a restart and a closed tab.
import { $$, keep } from "./dom.js";

const WEEK = 7 * 86400e3;
const home = (form) => `draft:${form.dataset.q ?? form.dataset.answer}`;

export function restore(form) {
  const found = keep.get(home(form));
  if (!found || Date.now() - found.at > WEEK) return;
  for (const field of $$("[data-draft]", form)) {
    if (found.texts[field.name] && !field.value) {
      field.value = found.texts[field.name];
      field.closest("details")?.setAttribute("open", "");
    }
  }
  for (const box of $$("input[name=option]", form)) if (found.options.includes(box.value)) box.checked = true;
  form.dispatchEvent(new Event("change", { bubbles: true }));
}

export function save(form) {
  const texts = Object.fromEntries($$("[data-draft]", form).filter((f) => f.value.trim()).map((f) => [f.name, f.value]));
  const options = $$("input[name=option]:checked", form).map((box) => box.value);
  if (Object.keys(texts).length || options.length) keep.set(home(form), { at: Date.now(), texts, options });
  else keep.drop(home(form));
}

export const forget = (form) => keep.drop(home(form));
export const begun = (form) => Boolean(keep.get(home(form)));

addEventListener("input", (e) => { const form = e.target.closest?.("form[data-q]"); if (form) save(form); });
addEventListener("change", (e) => { const form = e.target.closest?.("form[data-q]"); if (form && e.isTrusted) save(form); });
for (const form of $$("form[data-q]")) restore(form);
for (const name of keep.names()) if (name.startsWith("draft:") && Date.now() - (keep.get(name)?.at ?? 0) > WEEK) keep.drop(name);
