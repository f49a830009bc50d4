// At the door: what this browser kept of pages behind it is of no use to whoever comes next.
if (globalThis.caches && location.protocol !== "about:") caches.keys().then((names) => { for (const name of names) if (name.startsWith("pages-")) caches.delete(name); }).catch(() => {});

// A link that works once: its secret does not stay in the history. On one's own machine nobody's mail is read by machines, and
// whoever opens the link was given it, so the button presses itself.
const once = document.querySelector("form[data-once]");
once?.addEventListener("submit", () => { history.replaceState(null, "", "/enter"); once.querySelector("button").disabled = true; });
if (once && !document.prerendering && ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) once.requestSubmit();
