// On a source page: the reader's choice of dark or light.
"use strict";

try {
  document.body.dataset.theme = localStorage.getItem("theme") || "auto";
} catch {
  // Without storage it is as the system likes it.
}
