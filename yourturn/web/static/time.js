// The server sends deadlines, as points in time by its own clock; this counts down to them. A page may be old (from a cache,
// after sleep, after Back): what is left is still true, because nothing here counts from when the page was drawn.
import { $, $$, keep, say } from "./dom.js";

const arrival = performance.getEntriesByType("navigation")[0];
// Was this page kept by the browser or by the service worker, instead of drawn just now?
export const copied = document.documentElement.hasAttribute("data-copy") || arrival?.type === "back_forward";

// How far the server's clock is from ours. A copy tells an old time, so it goes by what was heard last.
const drawn = Number($("meta[name=yourturn]")?.dataset.now ?? 0);
let offset = (copied ? keep.get("clock") : undefined) ?? (drawn ? drawn - (Date.now() - performance.now() + (arrival?.responseStart || performance.now())) : 0);
const now = () => Date.now() + offset;
export function heard(theirs, asked) {
  offset = theirs - (asked + Date.now()) / 2;
  keep.set("clock", offset);
  tick();
}

function words(left) {
  if (left <= 0) return "0:00";
  if (left < 3600) return `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}`;
  const minutes = Math.round(left / 60), hours = Math.round(left / 3600); // as screen.length says it in brief
  if (minutes < 120) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return hours < 48 ? `${hours} h` : `${Math.round(left / 86400)} days`;
}

export function tick() {
  const here = now();
  for (const at of $$("[data-until]")) {
    const left = (at.dataset.until - here) / 1000, text = words(left), word = $(".w", at);
    if (word.textContent !== text) word.textContent = text;
    $(".run", at)?.setAttribute("stroke-dasharray", `${Math.max(0, Math.round((100 * left) / at.dataset.of))} 100`);
    at.classList.toggle("soon", left < 600 && left >= 120);
    at.classList.toggle("last", left < 120);
    tell(at, left);
    const ended = left <= 0;
    if (ended && !at.hasAttribute("data-ended")) dispatchEvent(new CustomEvent("yourturn:ended", { detail: at }));
    at.toggleAttribute("data-ended", ended);
  }
}

// A deadline that was moved: by a reminder, by somebody else who is asked now.
export function until(id, when) {
  for (const at of $$(`.row[data-id="${id}"] [data-until], form[data-q="${id}"] [data-until]`)) at.dataset.until = when;
}

// Spoken at ten minutes, at two and at the end, and only of the question that is open.
function tell(at, left) {
  if (!at.closest(".q")) return;
  const stage = left <= 0 ? 0 : left < 120 ? 2 : left < 600 ? 10 : 60;
  const before = Number(at.dataset.stage ?? stage);
  at.dataset.stage = stage;
  if (stage < before) say(stage ? `${stage} minutes left` : "The time is over");
}

export const clock = (when, second) => new Date(when).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second, hour12: false });
export function clocks(root = document) {
  for (const at of $$("time[data-clock]", root)) at.textContent = at.dataset.clock + clock(at.dateTime, at.dataset.clock ? undefined : "2-digit");
  for (const at of $$("time[title]", root)) at.title = new Date(at.dateTime).toLocaleString();
  tick();
}

clocks();
setInterval(tick, 1000);
for (const sort of ["visibilitychange", "pageshow"]) addEventListener(sort, tick);
