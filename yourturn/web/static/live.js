// Live updates. One event stream for all tabs of a browser: one tab has it and broadcasts the events to the others.
import { $, $$, boot, button, updateCounts, desk, el, storagePrefix, strip } from "./dom.js";
import { questionClosed, reloadForm } from "./article.js";
import { retryNow } from "./outbox.js";
import { removeNewer, reloadInbox } from "./list.js";
import { questionAsked, clearNotices } from "./notice.js";
import { clock, isCopy, setClock, setDeadline } from "./time.js";

const EVENTS = ["question_asked", "question_answered", "question_timeout", "question_cancelled", "status"];
// Milliseconds. The server sends at least every 15 s: a stream that was silent for more than two of these periods is dead, even if it
// looks open; so is a connection that does not open in time.
const MAX_SILENCE = 40_000, CONNECT_TIMEOUT = 15_000;
const channel = globalThis.BroadcastChannel ? new BroadcastChannel(storagePrefix) : null;
// The stream starts at the event after which the page was drawn, so that the first connection misses nothing. A page from a cache is
// reloaded instead.
let last = isCopy ? "" : $("#pulse")?.dataset.after ?? "", showsOldPage = isCopy, isLeader = false, state = "", wait = 1000, eventSource = null, lostTimer = 0, retryTimer = 0;

// --- the connection ---

function connect() {
  clearTimeout(retryTimer);
  eventSource?.close();
  const source = new EventSource(`/api/events?only=${EVENTS.join(",")},beat${last ? `&after=${encodeURIComponent(last)}` : ""}`);
  eventSource = source;
  watchSilence(CONNECT_TIMEOUT);
  source.onopen = () => { wait = 1000; watchSilence(MAX_SILENCE); setState("live"); };
  source.addEventListener("beat", (event) => { last = event.lastEventId || last; watchSilence(MAX_SILENCE); });
  source.onerror = () => {
    watchSilence(CONNECT_TIMEOUT);
    setState("lost");
    if (source.readyState === EventSource.CLOSED) { retryTimer = setTimeout(connect, wait); wait = Math.min(wait * 2, 15000); }
  };
  for (const name of EVENTS) source.addEventListener(name, (event) => {
    last = event.lastEventId || last;
    watchSilence(MAX_SILENCE);
    const message = { name, data: JSON.parse(event.data) };
    channel?.postMessage({ message, last });
    handleEvent(message);
  });
  if (!navigator.locks) addEventListener("pagehide", () => source.close(), { once: true });
}
let silenceTimer = 0;
function watchSilence(limit) {
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(() => { setState("lost"); connect(); }, limit);
}
if (channel) channel.onmessage = ({ data }) => {
  if (data.message) { last = data.last; handleEvent(data.message); }
  if (data.state) setState(data.state, false);
  if (data.hello && isLeader) channel.postMessage({ state });
  if (data.retry && isLeader) retry();
};
if (navigator.locks && channel) {
  navigator.locks.request(`${storagePrefix}live`, () => { isLeader = true; connect(); return new Promise(() => {}); });
  channel.postMessage({ hello: true });
} else { isLeader = true; connect(); }

// The device often notices a lost network before the connection does.
addEventListener("offline", () => setState("lost", false));
addEventListener("online", () => { if (eventSource?.readyState === EventSource.OPEN) setState("live"); else retry(); });
addEventListener("yourturn:connect", retry);
function retry() {
  if (isLeader || !channel) { wait = 1000; connect(); } else channel.postMessage({ retry: true });
}

function setState(now, own = true) {
  if (own) channel?.postMessage({ state: now });
  const back = now === "live" && state !== "live";
  state = now;
  const element = $("#pulse");
  if (element) {
    element.hidden = false;
    $(".dot", element).className = `dot ${now}`;
    $(".w", element).textContent = now === "live" ? "Live" : "Not live, trying again";
  }
  const page = document.documentElement.dataset;
  page.live = now;
  if (now === "live") { clearTimeout(lostTimer); lostTimer = 0; delete page.since; }
  else if (!lostTimer) { const element = clock(Date.now()); lostTimer = setTimeout(() => { page.since = element; dispatchEvent(new Event("yourturn:live")); }, 2000); }
  dispatchEvent(new Event("yourturn:live"));
  if (back) { check(); retryNow(); }
  if (back && showsOldPage) { showsOldPage = false; reloadInbox(); dispatchEvent(new Event("yourturn:back")); }
}

// True if the server is not the one that drew this page: other assets, or a restart on the same host.
function isRestarted(theirs) {
  const [build, host, began] = boot.split("."), [build2, host2, began2] = theirs.split(".");
  return build !== build2 || (host === host2 && began !== began2);
}

// Compares the page with the server: counts, closed questions, deadlines, clock.
async function check() {
  const shown = new Set([...$$(".list .row[data-id]:not(.over)").map((row) => row.dataset.id), ...$$("form[data-q]:has(.answer)").map((form) => form.dataset.q)]);
  const asked = Date.now();
  try {
    const response = await fetch(`/inbox/counts?shown=${[...shown].join()}`, { cache: "no-store", headers: { Accept: "application/json" } });
    if (response.status === 401) { strip("login", "You were signed out.", el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in")); return; }
    if (!response.ok) return;
    const counts = await response.json(), empty = $("[data-empty]"), reload = button("Reload", () => location.reload());
    if (desk && counts.desk !== desk) { strip("stale", "Another desk is served here now, or this one was restored.", reload); return; }
    setClock(counts.now, asked);
    updateCounts(counts);
    for (const [id, when] of Object.entries(counts.until)) setDeadline(id, when);
    await Promise.all(counts.closed.map(closeQuestion));
    for (const form of $$("form[data-closed]")) if (!counts.closed.includes(form.dataset.q)) reloadForm(form);  // still open
    if (empty && counts[empty.dataset.empty]) reloadInbox();
    if (isRestarted(counts.boot)) strip("stale", "This page is from before the restart.", reload);
  } catch { /* the next event repeats the check */ }
}
// At most one check per second.
let checkTimer = 0, lastCheck = -1000;
function scheduleCheck() {
  checkTimer ||= setTimeout(() => { checkTimer = 0; lastCheck = performance.now(); check(); }, Math.max(100, 1000 - (performance.now() - lastCheck)));
}

// --- events ---

function handleEvent({ name, data }) {
  if (name === "question_asked") questionAsked(data.questionId);
  else if (data.questionId) closeQuestion(data.questionId);
  scheduleCheck();
  dispatchEvent(new CustomEvent("yourturn:event", { detail: { name, data } }));
}
function closeQuestion(id) {
  clearNotices(id);
  removeNewer(id);
  return questionClosed(id);
}

// --- a page that is shown again ---

// A cached page may be out of date: its forms are inert until the check has ended.
async function verifyForms() {
  const forms = $$("form[data-answer]");
  for (const form of forms) form.inert = true;
  await check();
  for (const form of forms) form.inert = false;
}
if (isCopy && navigator.onLine) verifyForms();
addEventListener("pageshow", async (event) => {
  if (!event.persisted) return;
  if (isLeader && eventSource?.readyState !== EventSource.OPEN) retry();
  await verifyForms();
  reloadInbox();
  dispatchEvent(new Event("yourturn:back"));
});
addEventListener("yourturn:ended", scheduleCheck);
for (const type of ["yourturn:taken", "yourturn:doubt"]) addEventListener(type, scheduleCheck);
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") scheduleCheck(); });
