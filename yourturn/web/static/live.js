// What happens, as it happens. One connection for all tabs of a browser: the others listen to the tab that has it.
import { $, $$, boot, button, counts, desk, el, mine, strip } from "./dom.js";
import { gone, refresh } from "./article.js";
import { hurry } from "./outbox.js";
import { older, redraw } from "./list.js";
import { arrived, cleared } from "./notice.js";
import { clock, copied, heard, until } from "./time.js";

const WANT = ["question_asked", "question_answered", "question_timeout", "question_cancelled", "status"];
// Milliseconds. The server speaks at least every 15 s: a line that was silent for more than two of these is dead, however open it
// looks; so is one that was asked for and does not begin.
const SILENT = 40_000, MUTE = 15_000;
const channel = globalThis.BroadcastChannel ? new BroadcastChannel(mine) : null;
// From what the page shows on: what happened since it was drawn is told, whenever the first connection is made. An old copy is drawn
// again instead.
let last = copied ? "" : $("#pulse")?.dataset.after ?? "", old = copied, leads = false, state = "", wait = 1000, line = null, lost = 0, trying = 0;

// --- the connection ---

function connect() {
  clearTimeout(trying);
  line?.close();
  const source = new EventSource(`/api/events?only=${WANT.join(",")},beat${last ? `&after=${encodeURIComponent(last)}` : ""}`);
  line = source;
  listen(MUTE);
  source.onopen = () => { wait = 1000; listen(SILENT); pulse("live"); };
  source.addEventListener("beat", (e) => { last = e.lastEventId || last; listen(SILENT); });
  source.onerror = () => {
    listen(MUTE);
    pulse("lost");
    if (source.readyState === EventSource.CLOSED) { trying = setTimeout(connect, wait); wait = Math.min(wait * 2, 15000); }
  };
  for (const name of WANT) source.addEventListener(name, (e) => {
    last = e.lastEventId || last;
    listen(SILENT);
    const told = { name, data: JSON.parse(e.data) };
    channel?.postMessage({ told, last });
    hear(told);
  });
  if (!navigator.locks) addEventListener("pagehide", () => source.close(), { once: true });
}
let silence = 0;
function listen(most) {
  clearTimeout(silence);
  silence = setTimeout(() => { pulse("lost"); connect(); }, most);
}
if (channel) channel.onmessage = ({ data }) => {
  if (data.told) { last = data.last; hear(data.told); }
  if (data.state) pulse(data.state, false);
  if (data.hello && leads) channel.postMessage({ state });
  if (data.retry && leads) retry();
};
if (navigator.locks && channel) {
  navigator.locks.request(`${mine}live`, () => { leads = true; connect(); return new Promise(() => {}); });
  channel.postMessage({ hello: true });
} else { leads = true; connect(); }

// A device without a network often notices before its connection does.
addEventListener("offline", () => pulse("lost", false));
addEventListener("online", () => { if (line?.readyState === EventSource.OPEN) pulse("live"); else retry(); });
addEventListener("yourturn:connect", retry);
function retry() {
  if (leads || !channel) { wait = 1000; connect(); } else channel.postMessage({ retry: true });
}

function pulse(now, own = true) {
  if (own) channel?.postMessage({ state: now });
  const back = now === "live" && state !== "live";
  state = now;
  const at = $("#pulse");
  if (at) {
    at.hidden = false;
    $(".dot", at).className = `dot ${now}`;
    $(".w", at).textContent = now === "live" ? "Live" : "Not live, trying again";
  }
  const page = document.documentElement.dataset;
  page.live = now;
  if (now === "live") { clearTimeout(lost); lost = 0; delete page.since; }
  else if (!lost) { const at = clock(Date.now()); lost = setTimeout(() => { page.since = at; dispatchEvent(new Event("yourturn:live")); }, 2000); }
  dispatchEvent(new Event("yourturn:live"));
  if (back) { check(); hurry(); }
  if (back && old) { old = false; redraw(); dispatchEvent(new Event("yourturn:back")); }
}

// Is the server still the one that drew this page? Files of another build, or a new beginning on the same machine: no.
function stale(theirs) {
  const [build, host, began] = boot.split("."), [build2, host2, began2] = theirs.split(".");
  return build !== build2 || (host === host2 && began !== began2);
}

// What is shown, compared with what is: how many wait, what is closed by now, which deadlines were moved, what time it is.
async function check() {
  const shown = new Set([...$$(".list .row[data-id]:not(.over)").map((row) => row.dataset.id), ...$$("form[data-q]:has(.answer)").map((form) => form.dataset.q)]);
  const asked = Date.now();
  try {
    const answer = await fetch(`/inbox/counts?shown=${[...shown].join()}`, { cache: "no-store", headers: { Accept: "application/json" } });
    if (answer.status === 401) { strip("door", "You were signed out.", el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in")); return; }
    if (!answer.ok) return;
    const found = await answer.json(), empty = $("[data-empty]"), reload = button("Reload", () => location.reload());
    if (desk && found.desk !== desk) { strip("stale", "Another desk is served here now, or this one was restored.", reload); return; }
    heard(found.now, asked);
    counts(found);
    for (const [id, when] of Object.entries(found.until)) until(id, when);
    await Promise.all(found.closed.map(over));
    for (const form of $$("form[data-closed]")) if (!found.closed.includes(form.dataset.q)) refresh(form);  // open after all
    if (empty && found[empty.dataset.empty]) redraw();
    if (stale(found.boot)) strip("stale", "This page is from before the restart.", reload);
  } catch { /* the next event asks again */ }
}
// At most once a second, however much happens.
let counting = 0, counted = -1000;
function recount() {
  counting ||= setTimeout(() => { counting = 0; counted = performance.now(); check(); }, Math.max(100, 1000 - (performance.now() - counted)));
}

// --- events ---

function hear({ name, data }) {
  if (name === "question_asked") arrived(data.questionId);
  else if (data.questionId) over(data.questionId);
  recount();
  dispatchEvent(new CustomEvent("yourturn:event", { detail: { name, data } }));
}
function over(id) {
  cleared(id);
  older(id);
  return gone(id);
}

// --- a page that somebody comes back to ---

// A copy says what was; until it is known what is, nothing of it can be answered.
async function doubt() {
  const forms = $$("form[data-answer]");
  for (const form of forms) form.inert = true;
  await check();
  for (const form of forms) form.inert = false;
}
if (copied && navigator.onLine) doubt();
addEventListener("pageshow", async (e) => {
  if (!e.persisted) return;
  if (leads && line?.readyState !== EventSource.OPEN) retry();
  await doubt();
  redraw();
  dispatchEvent(new Event("yourturn:back"));
});
addEventListener("yourturn:ended", recount);
for (const sort of ["yourturn:taken", "yourturn:doubt"]) addEventListener(sort, recount);
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") recount(); });
