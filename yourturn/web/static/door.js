// At the door: what this browser kept of pages behind it is of no use to whoever comes next.
if (globalThis.caches && location.protocol !== "about:") caches.keys().then((names) => { for (const name of names) if (name.startsWith("pages-")) caches.delete(name); }).catch(() => {});
