// Service worker: caches the static files and the last pages for use without a network. Answers wait in the page's own outbox.
const build = new URL(location).searchParams.get("build");
const FILES = `files-${build}`, PAGES = "pages-1", MAX_PAGES = 40, OFFLINE = "/offline";
const CACHED = /^\/(inbox|questions|tasks|activity|stats)(\/|$)/, NOT_PAGES = /^\/(login|logout|enter|api|static)(\/|$)/;

self.addEventListener("install", (event) => { self.skipWaiting(); event.waitUntil(cachePage(OFFLINE).catch(() => {})); });
self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("files-") && name !== FILES) await caches.delete(name);
  await self.clients.claim();
})()));

async function serveFile(request) {
  const cached = await caches.match(request);
  if (cached) return cached;
  const response = await fetch(request);
  if (response.ok) (await caches.open(FILES)).put(request, response.clone());
  return response;
}

// The offline page is cached with the files, because signing out deletes the cached pages.
async function cachePage(path) {
  const response = await fetch(path, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) return;
  const pages = await caches.open(path === OFFLINE ? FILES : PAGES);
  await pages.put(path, response);
}
async function putPage(request, response) {
  const pages = await caches.open(PAGES);
  await pages.put(request, response);
  const all = await pages.keys();
  for (const old of all.slice(0, Math.max(0, all.length - MAX_PAGES))) await pages.delete(old);
}
// Marks a cached page, so that its scripts know that it may be out of date.
async function markAsCopy(cached) {
  const html = (await cached.text()).replace("<html ", "<html data-copy ");
  const headers = new Headers(cached.headers);
  headers.delete("Content-Encoding");
  return new Response(html, { status: 200, headers });
}
// The page of a question that was just answered: without a network the cached page of the question replaces it, and its scripts show
// the stored result.
const SENT = /^(\/questions\/Q\d+)\?sent=1(&|$)/;
async function servePage(request) {
  const { pathname, search } = new URL(request.url), cacheable = CACHED.test(pathname), question = SENT.exec(pathname + search)?.[1];
  try {
    const response = await fetch(request);
    if (cacheable && response.ok && !response.redirected) await putPage(request, response.clone());
    return response;
  } catch {
    const pages = await caches.open(PAGES);
    const cached = cacheable && ((await pages.match(request)) ?? (question && (await pages.match(question))));
    if (cached) return markAsCopy(cached);
    return (await caches.match(OFFLINE)) ?? new Response("Not live. Try again when you are back.", { status: 503, headers: { "Content-Type": "text/plain" } });
  }
}
// The first page loads before the worker starts: it sends its address and files.
self.addEventListener("message", (event) => {
  const { seen, files } = event.data ?? {};
  if (!seen) return;
  event.waitUntil((async () => {
    const pages = await caches.open(PAGES), store = await caches.open(FILES);
    for (const path of new Set([seen, "/inbox"])) if (CACHED.test(path.split("?")[0]) && !(await pages.match(path))) await cachePage(path).catch(() => {});
    if (!(await store.match(OFFLINE))) await cachePage(OFFLINE).catch(() => {});
    for (const path of files) if (!(await store.match(path))) await store.add(path).catch(() => {});
  })());
});
self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith("/static/")) event.respondWith(serveFile(event.request));
  else if (event.request.mode === "navigate" && !NOT_PAGES.test(url.pathname)) event.respondWith(servePage(event.request));
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = event.notification.data?.url ?? "/inbox";
  event.waitUntil((async () => {
    const open = (await self.clients.matchAll({ type: "window", includeUncontrolled: true }))[0];
    if (open) { await open.focus(); await open.navigate(url); } else await self.clients.openWindow(url);
  })());
});
