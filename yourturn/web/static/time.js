// Countdowns and local times. The server sends deadlines as points in time of its own clock, so that a countdown is right on an old page
// too (from a cache, after sleep, after Back).
import { $, $$, storage, announce } from "./dom.js";

const navigation = performance.getEntriesByType("navigation")[0];
// True if the page comes from the browser's history or the service worker's cache.
export const isCopy = document.documentElement.hasAttribute("data-copy") || navigation?.type === "back_forward";

// The difference between the server's clock and ours. A cached page contains an old time, so it uses the stored difference.
const drawn = Number($("meta[name=yourturn]")?.dataset.now ?? 0);
let offset = (isCopy ? storage.get("clock") : undefined) ?? (drawn ? drawn - (Date.now() - performance.now() + (navigation?.responseStart || performance.now())) : 0);
const now = () => Date.now() + offset;
export function setClock(serverTime, requestedAt) {
  offset = serverTime - (requestedAt + Date.now()) / 2;
  storage.set("clock", offset);
  tick();
}

function durationText(left) {
  if (left <= 0) return "0:00";
  if (left < 3600) return `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}`;
  const minutes = Math.round(left / 60), hours = Math.round(left / 3600); // as display/terminal.py length(brief=True)
  if (minutes < 120) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return hours < 48 ? `${hours} h` : `${Math.round(left / 86400)} days`;
}

export function tick() {
  const current = now();
  for (const element of $$("[data-until]")) {
    const left = (element.dataset.until - current) / 1000, text = durationText(left), word = $(".w", element);
    if (word.textContent !== text) word.textContent = text;
    $(".run", element)?.setAttribute("stroke-dasharray", `${Math.max(0, Math.round((100 * left) / element.dataset.of))} 100`);
    element.classList.toggle("soon", left < 600 && left >= 120);
    element.classList.toggle("last", left < 120);
    announceTimeLeft(element, left);
    const ended = left <= 0;
    if (ended && !element.hasAttribute("data-ended")) dispatchEvent(new CustomEvent("yourturn:ended", { detail: element }));
    element.toggleAttribute("data-ended", ended);
  }
}

// Moves a deadline, after a reminder or an escalation.
export function setDeadline(id, when) {
  for (const element of $$(`.row[data-id="${id}"] [data-until], form[data-q="${id}"] [data-until]`)) element.dataset.until = when;
}

// Announces ten minutes, two minutes and the end, only for the open question.
function announceTimeLeft(element, left) {
  if (!element.closest(".q")) return;
  const stage = left <= 0 ? 0 : left < 120 ? 2 : left < 600 ? 10 : 60;
  const before = Number(element.dataset.stage ?? stage);
  element.dataset.stage = stage;
  if (stage < before) announce(stage ? `${stage} minutes left` : "The time is over");
}

export const clock = (when, second) => new Date(when).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second, hour12: false });
export function formatTimes(root = document) {
  for (const element of $$("time[data-clock]", root)) element.textContent = element.dataset.clock + clock(element.dateTime, element.dataset.clock ? undefined : "2-digit");
  for (const element of $$("time[title]", root)) element.title = new Date(element.dateTime).toLocaleString();
  tick();
}

formatTimes();
setInterval(tick, 1000);
for (const type of ["visibilitychange", "pageshow"]) addEventListener(type, tick);
