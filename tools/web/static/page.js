// On every page: names as links, the menu at its place, and Escape for the meaning of a term.
"use strict";

for (const block of document.querySelectorAll(".highlight-cuda pre, .highlight-cpp pre")) linkNames(block, block.closest("figure")?.dataset.path);
linkNamesInProse();

// In a table, code breaks after a / . _ or comma only; where a table is wider than the page, its rows are cards.
for (const code of document.querySelectorAll("article td code .pre"))
  if (!code.children.length) code.innerHTML = code.innerHTML.replace(/[/._,](?=\w)/g, "$&<wbr>");
const topOf = text => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return range.getBoundingClientRect().top;
};
for (const table of document.querySelectorAll("article table")) {
  const names = [...table.querySelectorAll("thead th")].map(cell => cell.textContent);
  for (const row of table.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, i) => {
    cell.dataset.name = names[i] || "";
    cell.classList.toggle("nothing", !cell.textContent.trim());
  });
  const wrapper = table.closest(".table-wrapper");
  if (wrapper) new ResizeObserver(() => {
    table.classList.remove("cards");
    const isTorn = [...table.querySelectorAll("td wbr")].some(({ previousSibling: a, nextSibling: b }) => a && b && topOf(b) > topOf(a) + 2);
    table.classList.toggle("cards", innerWidth < 740 && (names.length > 3 || isTorn || table.scrollWidth > wrapper.clientWidth + 1));
  }).observe(wrapper);
}

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
