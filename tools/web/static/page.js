// On every page: names as links, Escape for the meaning of a term, and the arcs of the chapter under the pointer.
"use strict";

for (const block of document.querySelectorAll(".highlight-cuda pre, .highlight-cpp pre")) linkNames(block, block.closest("figure")?.dataset.path);
for (const block of document.querySelectorAll(".highlight pre, .table-wrapper")) block.tabIndex = 0;  // it may scroll sideways
linkNamesInProse();

// A meaning that lies over the text can be put away without leaving its word.
document.addEventListener("keydown", event => {
  if (event.key === "Escape") document.querySelectorAll(".term").forEach(term => term.classList.add("quiet"));
});
for (const term of document.querySelectorAll(".term"))
  for (const leaves of ["mouseleave", "focusout"]) term.addEventListener(leaves, () => term.classList.remove("quiet"));

const graph = document.querySelector(".chapter-graph");
if (graph) {
  const mark = number => {
    for (const arc of graph.querySelectorAll(".arc"))
      arc.classList.toggle("marked", arc.dataset.from === number || arc.dataset.to === number);
    const near = new Set([...graph.querySelectorAll(".arc.marked")].flatMap(arc => [arc.dataset.from, arc.dataset.to]));
    for (const link of graph.querySelectorAll("a")) link.classList.toggle("marked", near.has(link.dataset.chapter));
  };
  for (const link of graph.querySelectorAll("a")) {
    for (const comes of ["mouseenter", "focus"]) link.addEventListener(comes, () => mark(link.dataset.chapter));
    for (const goes of ["mouseleave", "blur"]) link.addEventListener(goes, () => mark(null));
  }
}
