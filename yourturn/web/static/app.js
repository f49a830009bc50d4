// Entry point. Reading and answering work without JavaScript.
import { trustedScriptURL } from "./dom.js";
import "./time.js";
import "./drafts.js";
import "./outbox.js";
import "./unsent.js";
import "./article.js";
import "./answer.js";
import "./list.js";
import "./keys.js";
import "./notice.js";
import "./live.js";

// The service worker starts after the first page has loaded. It gets the page's address and files, to cache this page as well.
if (navigator.serviceWorker) {
  navigator.serviceWorker.register(trustedScriptURL(`/sw.js?build=${new URL(import.meta.url).pathname.split("/")[2]}`)).catch(() => {});
  const files = performance.getEntriesByType("resource").map((entry) => new URL(entry.name).pathname).filter((path) => path.startsWith("/static/"));
  navigator.serviceWorker.ready.then((worker) => worker.active.postMessage({ seen: location.pathname + location.search, files })).catch(() => {});
}
// A click outside of a menu, or Escape, closes it.
addEventListener("click", (event) => { for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false; });
addEventListener("keydown", (event) => { if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false; });
