// Live updates of tasks, board and activity: changes are counted, not applied under the pointer; a log scrolls along until the reader
// scrolls up. And the settings page.
import { $, $$, fetchFragment, announce } from "./dom.js";
import { formatTimes } from "./time.js";

// --- board, list, activity: a button that counts changes ---

const pill = $("[data-stale]"), feed = $("[data-activity]");
let changes = 0;
pill?.addEventListener("click", () => location.reload());
function countChange() {
  changes += 1;
  pill.hidden = false;
  pill.textContent = changes === 1 ? "1 change. Show it" : `${changes} changes. Show them`;
}
function matchesFilter(key) {
  if (!feed) return true;
  const { project, task } = feed.dataset;
  return (!task || task.toUpperCase() === key) && (!project || key.startsWith(`${project}-`));
}

// --- a task: redraws its parts, except the one with the focus ---

const page = $("[data-task].cols"), log = $("[data-log]");
let redrawTimer = 0;
async function redrawTask() {
  redrawTimer = 0;
  const fragment = await fetchFragment(location.pathname).catch(() => null);
  if (!fragment) return;
  for (const old of $$("[data-part]")) {
    const fresh = $(`[data-part="${old.dataset.part}"]`, fragment);
    if (!fresh || old.contains(document.activeElement) || $("details[open]", old) || old.innerHTML === fresh.innerHTML) continue;
    old.replaceChildren(...fresh.childNodes);
    formatTimes(old);
  }
  const now = $(".cols", fragment);
  if (now) page.toggleAttribute("data-working", now.hasAttribute("data-working"));
  followLog();
}

let followTimer = 0, loading = false;
const atBottom = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
async function followLog() {
  clearTimeout(followTimer);
  if (!log || loading) return;
  if (document.visibilityState === "visible") {
    loading = true;
    const seen = $("[data-seen]", log)?.dataset.seen ?? "";
    const fragment = await fetchFragment(`${log.dataset.log}?seen=${seen}`).catch(() => null);
    loading = false;
    if (fragment?.childElementCount) {
      const stay = !atBottom(), top = log.scrollTop, first = log.hidden;
      log.hidden = false;
      $("[data-nolog]").hidden = true;
      log.replaceChildren(fragment);
      formatTimes(log);
      log.scrollTop = stay && !first ? top : log.scrollHeight;
    }
  }
  const works = page.hasAttribute("data-working");
  const mark = $("[data-following]");
  if (mark) mark.hidden = !works || document.documentElement.dataset.live === "lost";
  if (works) followTimer = setTimeout(followLog, 2000);
}

if (log) {
  log.scrollTop = log.scrollHeight;
  followLog();
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") followLog(); });
}

addEventListener("yourturn:back", () => { if (page) redrawTask(); });
addEventListener("yourturn:event", ({ detail: { data } }) => {
  const key = data.jobId ?? "";
  if (page && key === page.dataset.task) { clearTimeout(redrawTimer); redrawTimer = setTimeout(redrawTask, 150); }
  if (pill && matchesFilter(key)) countChange();
});

// --- lanes fold on a phone, except the one of people ---

const narrow = matchMedia("(max-width: 47.99rem)");
function fold() { for (const lane of $$("details.lane")) lane.open = !narrow.matches || lane.dataset.lane === "human"; }
if ($("[data-board]")) { fold(); narrow.addEventListener("change", fold); }

// --- settings ---

const allow = $("[data-permission]");
if (allow && globalThis.Notification) {
  const showPermission = () => {
    const now = Notification.permission;
    $(".w", allow).textContent = { granted: "Allowed on this device.", denied: "Your browser refuses them for this site. Its own settings can change that.", default: "Not allowed on this device yet." }[now];
    $("[data-allow]", allow).hidden = now !== "default";
  };
  allow.hidden = false;
  showPermission();
  $("[data-allow]", allow).addEventListener("click", async () => { await Notification.requestPermission(); showPermission(); });
}
for (const button of $$(".secret [data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = "Copied"; announce("Copied"); });
}

// --- the current section in the navigation of a page ---

const links = $$(".subnav a[href^='#']");
function markCurrent() {
  const current = links.find((link) => link.hash === location.hash) ?? links[0];
  for (const link of links) if (link === current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
}
if (links.length) { markCurrent(); addEventListener("hashchange", markCurrent); }
