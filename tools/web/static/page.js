// On every page: tables that fit, the menu at its place, and the meaning of a term. It comes first of all scripts.
"use strict";

function made(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
function button(text, action, label = text) {
  const button = made("button", { type: "button", textContent: text, ariaLabel: label });
  button.addEventListener("click", action);
  return button;
}

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

// A term says what it means on hover and on focus; under a finger the first tap does, and the second follows the link.
const meaning = made("p", { id: "meaning", role: "tooltip", hidden: true });
const hush = () => { meaning.hidden = true; };
function tell(term) {
  meaning.textContent = bookTerms[term.hash.slice(1)];
  meaning.hidden = false;
  const { left, top, bottom } = term.getClientRects()[0], isLow = bottom + meaning.offsetHeight > innerHeight;
  meaning.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - meaning.offsetWidth - 8))}px`;
  meaning.style.top = `${isLow ? top - meaning.offsetHeight : bottom}px`;
  meaning.told = term;
  term.setAttribute("aria-describedby", "meaning");
}
for (const term of document.querySelectorAll("a.term")) {
  let isFirst = false;
  for (const comes of ["mouseenter", "focus"]) term.addEventListener(comes, () => tell(term));
  for (const leaves of ["mouseleave", "blur"]) term.addEventListener(leaves, event => event.relatedTarget !== meaning && hush());
  term.addEventListener("pointerdown", () => { isFirst = meaning.hidden || meaning.told !== term; });
  term.addEventListener("click", event => {
    if (event.pointerType !== "touch" || !isFirst) return;
    event.preventDefault();
    tell(term);
  });
}
meaning.addEventListener("mouseleave", hush);
document.addEventListener("scroll", hush);
document.addEventListener("keydown", event => event.key === "Escape" && hush());
document.body.append(meaning);
