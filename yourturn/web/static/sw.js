// For a phone that is offline: the files, and the pages that were seen last. Answers wait in the page's own outbox.
const build = new URL(location).searchParams.get("build");
const FILES = `files-${build}`, PAGES = "pages-1", MOST = 40;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (e) => e.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("files-") && name !== FILES) await caches.delete(name);
  await self.clients.claim();
})()));

async function file(request) {
  const kept = await caches.match(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) (await caches.open(FILES)).put(request, answer.clone());
  return answer;
}
async function page(request) {
  const pages = await caches.open(PAGES);
  try {
    const answer = await fetch(request);
    if (answer.ok && !answer.redirected) {
      await pages.put(request, answer.clone());
      const all = await pages.keys();
      for (const old of all.slice(0, Math.max(0, all.length - MOST))) await pages.delete(old);
    }
    return answer;
  } catch {
    const kept = (await pages.match(request)) ?? (await pages.match("/inbox"));
    return kept ?? new Response("Not live. Try again when you are back.", { status: 503, headers: { "Content-Type": "text/plain" } });
  }
}
self.addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith("/static/")) e.respondWith(file(e.request));
  else if (e.request.mode === "navigate" && /^\/(inbox|questions|tasks)/.test(url.pathname)) e.respondWith(page(e.request));
});
self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  const url = e.notification.data?.url ?? "/inbox";
  e.waitUntil((async () => {
    const open = (await self.clients.matchAll({ type: "window", includeUncontrolled: true }))[0];
    if (open) { await open.focus(); await open.navigate(url); } else await self.clients.openWindow(url);
  })());
});
