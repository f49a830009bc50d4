// The server sends the words; this keeps them true. Where the server's clock and ours differ, seconds do not.
import { $, $$, say } from "./dom.js";

const born = new WeakMap();

function words(left) {
  if (left <= 0) return "0:00";
  if (left < 3600) return `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}`;
  return left < 172800 ? `${Math.floor(left / 3600)} h` : `${Math.floor(left / 86400)} days`;
}

function tick() {
  for (const at of $$("[data-left]")) {
    if (!born.has(at)) born.set(at, performance.now());
    const left = at.dataset.left - (performance.now() - born.get(at)) / 1000;
    const text = words(left), word = $(".w", at);
    if (word.textContent !== text) word.textContent = text;
    $(".run", at)?.setAttribute("stroke-dasharray", `${Math.max(0, Math.round((100 * left) / at.dataset.of))} 100`);
    at.classList.toggle("soon", left < 600 && left >= 120);
    at.classList.toggle("last", left < 120);
    tell(at, left);
  }
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
}

clocks();
tick();
setInterval(tick, 1000);
