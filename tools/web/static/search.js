// The search: sections that have all the words, those with the words in their title first, each with a line of its text.
"use strict";

const query = new URLSearchParams(location.search).get("q") || "", words = query.toLowerCase().split(/\s+/).filter(Boolean);
// "all-reduce" is also all_reduce, and "ranks" is also rank.
const plain = text => text.toLowerCase().replace(/[-_]/g, " ");
const wanted = words.map(word => plain(word).replace(/(?<=\w{3})s$/, ""));

const places = [...Object.entries(bookTerms).map(([anchor, meaning]) => ["chapters/glossary.html", anchor, `${anchor} (glossary)`, meaning]), ...bookSections];

function found() {
  const hits = [];
  places.forEach(([page, anchor, title, text], place) => {
    const head = plain(title), body = plain(text);
    if (!wanted.every(word => head.includes(word) || body.includes(word))) return;
    const whole = word => new RegExp(`\\b${RegExp.escape?.(word) ?? word.replace(/\W/g, "\\$&")}`).test(head);
    const exact = [title, text].some(part => part.includes(query)) ? 0.5 : 0, isTerm = head.replace(" (glossary)", "") === plain(query) ? 2 : 0;
    hits.push({ page, anchor, title, text, score: place / places.length - wanted.filter(whole).length - exact - isTerm });
  });
  return hits.sort((a, b) => a.score - b.score).slice(0, 40);
}

// About 200 letters around the first word that is there.
function lineOf(text) {
  const places = wanted.map(word => plain(text).indexOf(word)).filter(place => place >= 0), at = places.length ? Math.max(0, Math.min(...places) - 60) : 0;
  const from = at ? text.indexOf(" ", at) + 1 : 0, to = from + 200 < text.length ? text.lastIndexOf(" ", from + 200) : text.length;
  return `${from ? "… " : ""}${text.slice(from, to)}${to < text.length ? " …" : ""}`;
}
// A paragraph in which the words are marked.
function marked(line) {
  const forms = wanted.map(word => word.replace(/[^\w ]/g, "\\$&").replace(/ /g, "[-_ ]"));
  const parts = line.split(new RegExp(`(${forms.join("|")})`, "i"));
  return made("p", {}, ...parts.map((part, i) => (i % 2 ? made("mark", {}, part) : part)));
}

const list = document.getElementById("search-results"), hits = words.length ? found() : [];
document.querySelectorAll("input[name=q]").forEach(field => { field.value = query; });
const many = hits.length === 40 ? "The first 40 places" : `${hits.length} places`;
const says = !words.length ? "Type a word above." :
  hits.length ? `${many} with “${query}”:` : `Nothing has “${query}”.`;
list.append(made("p", {}, says), made("ul", {}, ...hits.map(({ page, anchor, title, text }) =>
  made("li", {}, made("a", { href: `${page}#${anchor}`, textContent: title }), marked(lineOf(text))))));
