// On a source page: the reader's choice of dark or light, and the lines for an excerpt that asks for them.
"use strict";

try {
  document.body.dataset.theme = localStorage.getItem("theme") || "auto";
} catch {
  // Without storage it is as the system likes it.
}
const pre = document.querySelector("main.code pre");
if (pre && window.parent !== window) {
  window.parent.postMessage({ path: document.body.dataset.path, html: pre.innerHTML }, "*");
}
