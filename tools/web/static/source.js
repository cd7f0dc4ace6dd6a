// On a source page: the reader's choice of dark or light, names as links, and the lines for an excerpt that asks for them.
"use strict";

try {
  document.body.dataset.theme = localStorage.getItem("theme") || "auto";
} catch {
  // Without storage it is as the system likes it.
}
const pre = document.querySelector("main.code pre");
if (pre && window.parent !== window) {
  const first = [...document.querySelectorAll("nav a")].map(link => ({ href: link.href, text: link.textContent }));
  window.parent.postMessage({ path: document.body.dataset.path, html: pre.innerHTML, first }, "*");
} else if (pre) {
  linkNames(pre, document.body.dataset.path);
}
