// For a phone that is offline: the files, and the pages that were seen last. Answers wait in the page's own outbox.
const build = new URL(location).searchParams.get("build");
const FILES = `files-${build}`, PAGES = "pages-1", MOST = 40, AWAY = "/offline";
const KEPT = /^\/(inbox|questions|tasks|activity|stats)(\/|$)/, OURS = /^\/(login|logout|enter|api|static)(\/|$)/;

self.addEventListener("install", (e) => { self.skipWaiting(); e.waitUntil(keep(AWAY).catch(() => {})); });
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

// The page for pages that were not kept lies with the files; the others go when somebody signs out.
async function keep(path) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const pages = await caches.open(path === AWAY ? FILES : PAGES);
  await pages.put(path, answer);
}
async function put(request, answer) {
  const pages = await caches.open(PAGES);
  await pages.put(request, answer);
  const all = await pages.keys();
  for (const old of all.slice(0, Math.max(0, all.length - MOST))) await pages.delete(old);
}
// A copy says that it is one: what it tells was true when it was drawn.
async function copy(kept) {
  const html = (await kept.text()).replace("<html ", "<html data-copy ");
  const headers = new Headers(kept.headers);
  headers.delete("Content-Encoding");
  return new Response(html, { status: 200, headers });
}
// A question that was just answered is the same page: what the device knows of it by then, it says itself.
const SENT = /^(\/questions\/Q\d+)\?sent=1(&|$)/;
async function page(request) {
  const { pathname, search } = new URL(request.url), kept = KEPT.test(pathname), asked = SENT.exec(pathname + search)?.[1];
  try {
    const answer = await fetch(request);
    if (kept && answer.ok && !answer.redirected) await put(request, answer.clone());
    return answer;
  } catch {
    const pages = await caches.open(PAGES), found = kept && ((await pages.match(request)) ?? (asked && (await pages.match(asked))));
    if (found) return copy(found);
    return (await caches.match(AWAY)) ?? new Response("Not live. Try again when you are back.", { status: 503, headers: { "Content-Type": "text/plain" } });
  }
}
// The first page comes before the worker does: it says what it is made of.
self.addEventListener("message", (e) => {
  const { seen, files } = e.data ?? {};
  if (!seen) return;
  e.waitUntil((async () => {
    const pages = await caches.open(PAGES), store = await caches.open(FILES);
    for (const path of new Set([seen, "/inbox"])) if (KEPT.test(path.split("?")[0]) && !(await pages.match(path))) await keep(path).catch(() => {});
    if (!(await store.match(AWAY))) await keep(AWAY).catch(() => {});
    for (const path of files) if (!(await store.match(path))) await store.add(path).catch(() => {});
  })());
});
self.addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith("/static/")) e.respondWith(file(e.request));
  else if (e.request.mode === "navigate" && !OURS.test(url.pathname)) e.respondWith(page(e.request));
});
self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  const url = e.notification.data?.url ?? "/inbox";
  e.waitUntil((async () => {
    const open = (await self.clients.matchAll({ type: "window", includeUncontrolled: true }))[0];
    if (open) { await open.focus(); await open.navigate(url); } else await self.clients.openWindow(url);
  })());
});
