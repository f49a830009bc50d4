// Pages about work: what changed is said, never moved under the finger; a log is followed until somebody scrolls.
import { $, $$, part, say } from "./dom.js";
import { clocks } from "./time.js";

// --- board, list, activity: what is old says so ---

const pill = $("[data-stale]"), feed = $("[data-activity]");
let changes = 0;
pill?.addEventListener("click", () => location.reload());
function stale() {
  changes += 1;
  pill.hidden = false;
  pill.textContent = changes === 1 ? "1 change. Show it" : `${changes} changes. Show them`;
}
function fits(key) {
  if (!feed) return true;
  const { project, task } = feed.dataset;
  return (!task || task.toUpperCase() === key) && (!project || key.startsWith(`${project}-`));
}

// --- a task: its parts are drawn again, except where somebody is ---

const page = $("[data-task].cols"), log = $("[data-log]");
let drawing = 0;
async function redraw() {
  drawing = 0;
  const found = await part(location.pathname).catch(() => null);
  if (!found) return;
  for (const old of $$("[data-part]")) {
    const fresh = $(`[data-part="${old.dataset.part}"]`, found);
    if (!fresh || old.contains(document.activeElement) || $("details[open]", old) || old.innerHTML === fresh.innerHTML) continue;
    old.replaceChildren(...fresh.childNodes);
    clocks(old);
  }
  const now = $(".cols", found);
  if (now) page.toggleAttribute("data-working", now.hasAttribute("data-working"));
  follow();
}

let following = 0, reading = false;
const below = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
async function follow() {
  clearTimeout(following);
  if (!log || reading) return;
  if (document.visibilityState === "visible") {
    reading = true;
    const seen = $("[data-seen]", log)?.dataset.seen ?? "";
    const found = await part(`${log.dataset.log}?seen=${seen}`).catch(() => null);
    reading = false;
    if (found?.childElementCount) {
      const stay = !below(), top = log.scrollTop, first = log.hidden;
      log.hidden = false;
      $("[data-nolog]").hidden = true;
      log.replaceChildren(found);
      clocks(log);
      log.scrollTop = stay && !first ? top : log.scrollHeight;
    }
  }
  const works = page.hasAttribute("data-working");
  const mark = $("[data-following]");
  if (mark) mark.hidden = !works || document.documentElement.dataset.live === "lost";
  if (works) following = setTimeout(follow, 2000);
}

if (log) {
  log.scrollTop = log.scrollHeight;
  follow();
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") follow(); });
}

addEventListener("yourturn:back", () => { if (page) redraw(); });
addEventListener("yourturn:event", ({ detail: { data } }) => {
  const key = data.jobId ?? "";
  if (page && key === page.dataset.task) { clearTimeout(drawing); drawing = setTimeout(redraw, 150); }
  if (pill && fits(key)) stale();
});

// --- lanes fold on a phone, and the one that needs you is open ---

const narrow = matchMedia("(max-width: 47.99rem)");
function fold() { for (const lane of $$("details.lane")) lane.open = !narrow.matches || lane.dataset.lane === "human"; }
if ($("[data-board]")) { fold(); narrow.addEventListener("change", fold); }

// --- settings ---

const allow = $("[data-permission]");
if (allow && globalThis.Notification) {
  const tell = () => {
    const now = Notification.permission;
    $(".w", allow).textContent = { granted: "Allowed on this device.", denied: "Your browser refuses them for this site. Its own settings can change that.", default: "Not allowed on this device yet." }[now];
    $("[data-allow]", allow).hidden = now !== "default";
  };
  allow.hidden = false;
  tell();
  $("[data-allow]", allow).addEventListener("click", async () => { await Notification.requestPermission(); tell(); });
}
for (const button of $$(".secret [data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = "Copied"; say("Copied"); });
}

// --- the part of a page that was gone to ---

const links = $$(".subnav a[href^='#']");
function here() {
  const at = links.find((link) => link.hash === location.hash) ?? links[0];
  for (const link of links) if (link === at) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
}
if (links.length) { here(); addEventListener("hashchange", here); }
