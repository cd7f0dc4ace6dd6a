// What is wrong with a page as a reader sees it, as a list of sentences: browser_test.py runs this in each page.
const wrong = [];
const seen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length;
if (document.documentElement.scrollWidth > innerWidth) {
  const wide = [...document.querySelectorAll("article *")].filter(element => element.getBoundingClientRect().right > innerWidth + 1);
  wrong.push(`scrolls sideways, to ${document.documentElement.scrollWidth}: ${wide.slice(0, 3).map(element => element.outerHTML.slice(0, 80))}`);
}
let level = 0;
for (const heading of document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) wrong.push(`"${heading.textContent}" is ${heading.tagName} below H${level}`);
  level = next;
}
for (const picture of document.querySelectorAll("img"))
  if (!picture.alt || !picture.naturalWidth && picture.complete && seen(picture)) wrong.push(`a picture without words or without a file: ${picture.src}`);
for (const field of document.querySelectorAll("article :is(button, textarea, select, input)"))
  if (!(field.ariaLabel || field.textContent.trim())) wrong.push(`nothing says what this is: ${field.outerHTML}`);
// In a cell, code breaks where page.js has said that it may, or at a blank or a hyphen.
const texts = document.createTreeWalker(document.querySelector("article, main"), NodeFilter.SHOW_TEXT), where = document.createRange();
while (texts.nextNode()) {
  if (!texts.currentNode.parentElement.closest("td code") || /[\s-]/.test(texts.currentNode.data)) continue;
  where.selectNodeContents(texts.currentNode);
  const tops = new Set([...where.getClientRects()].map(({ top }) => Math.round(top)));
  if (tops.size > 1) wrong.push(`a cell breaks inside ${texts.currentNode.data}`);
}
// WCAG's contrast, of each text against the first background behind it that is not transparent.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const colours = new Map();
const rgba = css => {
  if (!colours.has(css)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    colours.set(css, [...canvas.getImageData(0, 0, 1, 1).data]);
  }
  return colours.get(css);
};
const luminance = colour => colour.slice(0, 3).map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
  .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const poor = new Set();
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest("svg, script, style, option") || !seen(element)) continue;
  let behind = element;
  while (behind && rgba(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const over = luminance(rgba(getComputedStyle(element).color)), under = luminance(behind ? rgba(getComputedStyle(behind).backgroundColor) : [255, 255, 255]);
  const contrast = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
  if (contrast < 4.5) poor.add(`contrast ${contrast.toFixed(2)}: ${element.tagName}.${element.className} "${walker.currentNode.data.trim().slice(0, 30)}"`);
}
return [...wrong, ...[...poor].slice(0, 4)];
