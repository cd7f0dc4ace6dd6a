// On every page: names as links, the menu at its place, and Escape for the meaning of a term.
"use strict";

for (const block of document.querySelectorAll(".highlight-cuda pre, .highlight-cpp pre")) linkNames(block, block.closest("figure")?.dataset.path);
linkNamesInProse();

// What scrolls sideways must do so by keyboard, too.
for (const block of document.querySelectorAll(".highlight pre, .table-wrapper"))
  if (block.scrollWidth > block.clientWidth) Object.assign(block, { tabIndex: 0, role: "region", ariaLabel: block.matches("pre") ? "code" : "table" });
const here = document.querySelector(".sidebar-tree .current-page"), menu = document.querySelector(".sidebar-scroll");
if (here && menu) menu.scrollTop = here.offsetTop - menu.clientHeight / 2;

// A meaning that lies over the text can be put away without leaving its word.
document.addEventListener("keydown", event => {
  if (event.key === "Escape") document.querySelectorAll(".term").forEach(term => term.classList.add("quiet"));
});
for (const term of document.querySelectorAll(".term"))
  for (const leaves of ["mouseleave", "focusout"]) term.addEventListener(leaves, () => term.classList.remove("quiet"));
