// Names in code: each leads to the line where it is born. names.js has the lines, as path -> name -> line.
"use strict";

const bookBirths = new Map();
for (const [path, names] of Object.entries(window.bookNames || {}))
  for (const [name, line] of Object.entries(names)) bookBirths.set(name, { path, line });

const bookRoot = document.documentElement.dataset.content_root || "./";

function linkTo(name) {
  const { path, line } = bookBirths.get(name);
  const link = document.createElement("a");
  link.className = "born";
  link.href = `${bookRoot}source/${path}.html#L${line}`;
  link.title = `${path}, line ${line}`;
  link.textContent = name;
  return link;
}

// Links the first use of each name in `code`, which shows the file `path`: but for members, comments, strings, and births there.
function linkNames(code, path = "") {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  const linked = new Set();
  let before = "";  // the last characters before this text
  for (const text of texts) {
    const line = text.data;
    if (!text.parentElement.closest("a, .c, .c1, .cm, .cp, .cpf, .s, .s1, .s2, .se, .linenos")) {
      let rest = text;
      for (const found of line.matchAll(/[A-Za-z_]\w{2,}/g)) {
        const birth = bookBirths.get(found[0]);
        const left = (before + line.slice(0, found.index)).trimEnd();
        if (!birth || linked.has(found[0]) || birth.path === path || /(\.|->)$/.test(left)) continue;
        linked.add(found[0]);
        rest = rest.splitText(found.index - (line.length - rest.data.length));
        const name = rest;
        rest = name.splitText(found[0].length);
        name.replaceWith(linkTo(found[0]));
      }
    }
    before = (before + line).slice(-8);
  }
}

// In prose only what is nothing but a name of the book, and could be nothing else.
function linkNamesInProse() {
  for (const word of document.querySelectorAll("article code.literal > .pre:only-child")) {
    const name = word.textContent.replace(/\(\)$/, "");
    if (bookBirths.has(name) && /[A-Z_]/.test(name) && !word.closest("a")) word.replaceChildren(linkTo(name), word.textContent.slice(name.length));
  }
}
