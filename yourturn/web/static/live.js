// What happens, as it happens. One connection for all tabs of a browser: the others listen to the tab that has it.
import { $, boot, counts, el, keep, part, say, show, strip, typing } from "./dom.js";
import { over, wake } from "./answer.js";
import { flush } from "./outbox.js";
import { newer, older } from "./list.js";
import { begun } from "./drafts.js";

const WANT = ["question_asked", "question_answered", "question_timeout", "question_cancelled", "status"];
const channel = globalThis.BroadcastChannel ? new BroadcastChannel("yourturn") : null;
let last = "", leads = false, state = "", wait = 1000, line = null;

// --- the connection ---

function connect() {
  const source = new EventSource(`/api/events?only=${WANT.join(",")}${last ? `&after=${encodeURIComponent(last)}` : ""}`);
  line = source;
  source.onopen = () => { wait = 1000; pulse("live"); recount(); };
  source.onerror = () => {
    pulse("lost");
    if (source.readyState === EventSource.CLOSED) { source.close(); setTimeout(connect, wait); wait = Math.min(wait * 2, 15000); }
  };
  for (const name of WANT) source.addEventListener(name, (e) => {
    last = e.lastEventId || last;
    const told = { name, data: JSON.parse(e.data) };
    channel?.postMessage({ told, last });
    hear(told);
  });
  if (!navigator.locks) addEventListener("pagehide", () => source.close(), { once: true });
}
if (channel) channel.onmessage = ({ data }) => {
  if (data.told) { last = data.last; hear(data.told); }
  if (data.state) pulse(data.state, false);
  if (data.hello && leads) channel.postMessage({ state });
};
if (navigator.locks && channel) {
  navigator.locks.request("yourturn-live", () => { leads = true; connect(); return new Promise(() => {}); });
  channel.postMessage({ hello: true });
} else connect();

// A device without a network often notices before its connection does.
addEventListener("offline", () => pulse("lost", false));
addEventListener("online", () => { if (line?.readyState === EventSource.OPEN) pulse("live"); });

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
  document.documentElement.dataset.live = now;
  if (back) { recount(); flush(); }
}

// Is the server still the one that drew this page? Files of another build, or a new beginning on the same machine: no.
function stale(theirs) {
  const [build, host, began] = boot.split("."), [build2, host2, began2] = theirs.split(".");
  return build !== build2 || (host === host2 && began !== began2);
}
// At most once a second, however much happens.
let counting = 0, counted = -1000;
function recount() {
  if (counting) return;
  counting = setTimeout(async () => {
    counting = 0;
    counted = performance.now();
    try {
      const answer = await fetch("/inbox/counts", { headers: { Accept: "application/json" } });
      if (answer.status === 401) { strip("door", "You were signed out. ", el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in")); return; }
      if (!answer.ok) return;
      const found = await answer.json();
      counts(found);
      if (stale(found.boot)) {
        const reload = el("button", { className: "btn", type: "button" }, "Reload");
        reload.addEventListener("click", () => location.reload());
        strip("stale", "This page is from before the restart. ", reload);
      }
    } catch { /* the next event asks again */ }
  }, Math.max(100, 1000 - (performance.now() - counted)));
}

// --- events ---

function hear({ name, data }) {
  if (name === "question_asked") arrived(data.questionId);
  else if (name === "status") { if (data.state === "review") arrived(data.jobId); else if ($(`[data-id="${data.jobId}"], [data-q="${data.jobId}"]`)) gone(data.jobId); }
  else gone(data.questionId);
  dispatchEvent(new CustomEvent("yourturn:event", { detail: { name, data } }));
}

async function gone(id) {
  $(`.toast[data-id="${id}"]`)?.remove();
  older(id);
  unnotify(id);
  const row = $(`.row[data-id="${id}"]:not(.over)`), form = $(`form[data-q="${id}"]`);
  recount();
  if (!row && !form) return;
  const found = await part(`/questions/${id}?as=row`).catch(() => null);
  if (row && !row.classList.contains("over")) {
    const result = found && $(".result", found);
    if (result) over(row, result.textContent); else if (!found) over(row, "It does not wait any more.");
  }
  if (form && form.isConnected && form.dataset.answer && !$("[aria-busy]", form)) {
    const result = found && $(".result", found)?.textContent;
    if (!result) return;
    const sheet = form.closest("dialog");
    if (sheet && !begun(form)) { sheet.close(); return; }
    $(".q-top", form).after(el("div", { className: "alert calm", role: "status" }, el("div", {}, el("p", {}, result))));
    say(result);
  }
}

const seen = () => keep.get("noticed", []);
async function arrived(id) {
  recount();
  if (seen().includes(id) && $(`.row[data-id="${id}"]`)) return;
  const found = await part(`/questions/${id}?as=toast`).catch(() => null);
  const made = found && $(".toast", found);
  if (!made || made.dataset.mine !== "yes" || $(`.row[data-id="${id}"]`)) return;
  newer(id);
  say(made.dataset.say);
  if (made.dataset.loud !== "yes") return;
  if (document.visibilityState === "hidden") { notify(made); return; }
  keep.set("noticed", [...seen().filter((other) => other !== id), id].slice(-200));
  if (idle() && !$("dialog[open]") && !typing(document.activeElement) && !$(".main > .q")) sheet(id);
  else {
    show(made);
    $("[data-later]", made).addEventListener("click", () => made.remove());
    $("[data-open]", made).addEventListener("click", (e) => { e.preventDefault(); made.remove(); sheet(id, true); });
  }
}

let touched = 0;
for (const sort of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"]) addEventListener(sort, () => { touched = performance.now(); }, { passive: true });
const idle = () => performance.now() - touched > 2000;

// --- the sheet ---

async function sheet(id, wanted = false) {
  const found = await part(`/questions/${id}?as=sheet`).catch(() => null);
  if (!found || $("dialog[open]")) return;
  if (!wanted && (typing(document.activeElement) || !idle())) return;
  const inside = el("div"), close = el("button", { className: "btn plain closer", type: "button" });
  close.setAttribute("aria-label", "Close");
  close.append("✕");
  inside.append(found, close);
  const made = el("dialog", { className: "sheet" }, inside);
  made.setAttribute("aria-labelledby", $(".h1", found.isConnected ? found : inside).id);
  const before = document.activeElement;
  close.addEventListener("click", () => made.close());
  made.addEventListener("close", () => { made.remove(); before?.focus?.(); });
  document.body.append(made);
  wake(made);
  // A tap or a key that was meant for the page must neither answer nor close what came up under it.
  made.inert = !wanted;
  made.showModal();
  if (!wanted) setTimeout(() => { made.inert = false; $(".h1", made)?.focus(); }, 600); else $(".h1", made)?.focus();
}

// --- notices ---

async function notify(made) {
  const id = made.dataset.id;
  if (!globalThis.Notification || Notification.permission !== "granted" || seen().includes(id)) return;
  keep.set("noticed", [...seen(), id].slice(-200));
  const title = made.dataset.say.replace(/^New /, "").replace(/^./, (c) => c.toUpperCase());
  const options = { body: made.dataset.kind === "permission" ? "Asks before it acts." : made.dataset.title, tag: id, data: { url: `/questions/${id}` } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) { worker.showNotification(title, options); return; }
  const note = new Notification(title, options);
  note.onclick = () => { focus(); location.assign(options.data.url); };
}
async function unnotify(id) {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const note of (await worker?.getNotifications({ tag: id })) ?? []) note.close();
}
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") recount(); });
