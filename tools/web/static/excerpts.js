// Excerpts that unfold to their whole file, in place. The lines come from the file's own page, in a frame that nobody sees:
// a page that was opened from a folder may read no other file, but may be told by one.
"use strict";

const askedExcerpts = new Map();  // the frame's window -> the excerpt

window.addEventListener("message", event => {
  const figure = askedExcerpts.get(event.source);
  if (!figure || event.data?.path !== figure.dataset.path) return;
  askedExcerpts.delete(event.source);
  figure.querySelector("iframe").remove();
  figure.append(wholeFile(figure, event.data));
  unfold(figure, true);
});

function wholeFile(figure, { path, html }) {
  const whole = document.createElement("div");
  whole.className = "whole highlight";
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.ariaLabel = path;
  pre.innerHTML = html;
  [...pre.children].forEach((line, i) => {
    line.removeAttribute("id");
    line.classList.toggle("shown", i + 1 >= figure.dataset.first && i + 1 <= figure.dataset.last);
  });
  whole.append(pre);
  return whole;
}

function firstLine(figure) {
  return figure.querySelector(figure.classList.contains("open") ? ".whole .shown" : "pre").getBoundingClientRect().top;
}

// Shows the whole file or the excerpt only; the excerpt's first line stays where it was on the screen.
function unfold(figure, open) {
  const before = firstLine(figure), button = figure.querySelector("button");
  figure.classList.toggle("open", open);
  button.ariaExpanded = open;
  button.textContent = open ? "excerpt only" : "whole file";
  window.scrollBy({ top: firstLine(figure) - before, behavior: "instant" });
}

for (const figure of document.querySelectorAll("figure.excerpt")) {
  const button = figure.querySelector("button");
  button.hidden = false;
  button.addEventListener("click", () => {
    if (figure.querySelector(".whole")) return unfold(figure, !figure.classList.contains("open"));
    if (figure.querySelector("iframe")) return undefined;
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.title = figure.dataset.path;
    frame.src = figure.dataset.source;
    figure.append(frame);
    askedExcerpts.set(frame.contentWindow, figure);
    return undefined;
  });
}
