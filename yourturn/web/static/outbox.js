// Answers that could not be sent wait on this device, and go when it is back. Each carries its idempotency key, so that one
// which did arrive, and whose reply was lost, counts once.
import { csrf, el, keep, say, strip, toast } from "./dom.js";
import { clock } from "./time.js";

export const OFFLINE = "Saved on this device. Sent when you are back.";
const read = () => keep.get("outbox", []);

export function post(url, body) {
  return fetch(url, { method: "POST", body, headers: { Accept: "application/json" } });
}

export function put(item) {
  keep.set("outbox", [...read().filter((other) => other.id !== item.id), item]);
  tell();
}
export const queued = (id) => read().some((item) => item.id === id);

function tell() {
  const count = read().length;
  if (!navigator.onLine) strip("offline", el("b", {}, "Offline. "), count ? `${count} ${count === 1 ? "answer waits" : "answers wait"} on this device and ${count === 1 ? "is" : "are"} sent when you are back.` : "What you answer is kept on this device and sent when you are back.");
  else if (count) strip("offline", `${count} ${count === 1 ? "answer waits" : "answers wait"} on this device.`);
  else strip("offline");
}

let busy = false;
async function drain() {
  while (navigator.onLine) {
    const item = read()[0];
    if (!item) break;
    const body = new URLSearchParams(item.body);
    body.set("csrf", csrf);
    let answer;
    try { answer = await post(item.url, body); } catch { break; }
    const data = await answer.json().catch(() => ({}));
    if (answer.status === 401 || answer.status >= 500 || answer.status === 429) {
      if (answer.status === 401) strip("door", "You were signed out. ", el("a", { href: `/login?next=${encodeURIComponent(location.pathname)}` }, "Sign in"), " to send what waits on this device.");
      break;
    }
    keep.set("outbox", read().filter((other) => other.body !== item.body));
    keep.drop(`draft:${item.id}`);
    settled(item, answer.ok, data);
  }
}

function settled(item, fine, data) {
  const words = fine ? `Sent ${item.id}. ${data.sent}` : data.late ? `${item.id} came too late. ${data.late.lead} ${data.late.rest}${data.late.iso ? `, at ${clock(data.late.iso)}` : ""}.` : `${item.id} was not sent. ${data.error?.message ?? ""}`;
  const look = el("button", { className: "btn go", type: "button" }, data.late ? "What now?" : "Look");
  look.addEventListener("click", () => (data.late ? again(item) : location.assign(`/questions/${item.id}`)));
  toast(words, look);
  say(words);
  dispatchEvent(new CustomEvent("yourturn:sent", { detail: { id: item.id, data: fine ? data : null } }));
}

// The page about a late answer comes from the server: the same form, sent as a form.
export function again(item) {
  const body = new URLSearchParams(item.body);
  body.set("csrf", csrf);
  const form = el("form", { method: "post", action: item.url, hidden: true });
  for (const [name, value] of body) form.append(el("input", { type: "hidden", name, value }));
  document.body.append(form);
  form.submit();
}

export async function flush() {
  tell();
  if (busy || !read().length || !navigator.onLine) return;
  busy = true;
  try {
    await (navigator.locks ? navigator.locks.request("yourturn-outbox", drain) : drain());
  } finally {
    busy = false;
    tell();
  }
}

addEventListener("online", flush);
addEventListener("offline", tell);
flush();
