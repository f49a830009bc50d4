// Everything here is comfort: reading and answering work without it.
import { script } from "./dom.js";
import "./time.js";
import "./drafts.js";
import "./outbox.js";
import "./answer.js";
import "./list.js";
import "./keys.js";
import "./live.js";

if (navigator.serviceWorker) navigator.serviceWorker.register(script(`/sw.js?build=${new URL(import.meta.url).pathname.split("/")[2]}`)).catch(() => {});
// A menu closes when somebody goes elsewhere.
addEventListener("click", (e) => { for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false; });
addEventListener("keydown", (e) => { if (e.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false; });
