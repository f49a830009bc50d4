// Everything here is comfort: reading and answering work without it.
import { script } from "./dom.js";
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

// The worker comes after the first page: it is told what that was made of, so that this page, too, can be read without a network.
if (navigator.serviceWorker) {
  navigator.serviceWorker.register(script(`/sw.js?build=${new URL(import.meta.url).pathname.split("/")[2]}`)).catch(() => {});
  const files = performance.getEntriesByType("resource").map((one) => new URL(one.name).pathname).filter((path) => path.startsWith("/static/"));
  navigator.serviceWorker.ready.then((worker) => worker.active.postMessage({ seen: location.pathname + location.search, files })).catch(() => {});
}
// A menu closes when somebody goes elsewhere.
addEventListener("click", (e) => { for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false; });
addEventListener("keydown", (e) => { if (e.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false; });
