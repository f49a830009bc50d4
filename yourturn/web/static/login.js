// The login pages. Deletes the cached pages of the user who signed out.
if (globalThis.caches && location.protocol !== "about:") caches.keys().then((names) => { for (const name of names) if (name.startsWith("pages-")) caches.delete(name); }).catch(() => {});

// A one-time link: its secret is removed from the history. On this machine the page submits itself, because no mail filter loads links
// here.
const form = document.querySelector("form[data-once]");
form?.addEventListener("submit", () => { history.replaceState(null, "", "/enter"); form.querySelector("button").disabled = true; });
if (form && !document.prerendering && ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) form.requestSubmit();
