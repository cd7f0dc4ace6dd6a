// Predict first: a form under each question. Its answer in "Your predictions" stays covered until
// the reader has locked one, or opens it anyway. Nothing else is ever covered. Answers stay in this
// browser; on a site made at home, a button saves them for `./book progress --import`.
"use strict";

const kept = "ddp-by-hand/";
// A browser may refuse to keep anything for a page from a folder: then answers live with the page.
function store(use) {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}

class Predictions {
  constructor(chapter, asked) {
    this.chapter = chapter;
    const known = store(all => JSON.parse(all.getItem(kept + chapter)));
    this.state = known || { answers: {}, opened: [] };
    const answers = document.querySelectorAll("#your-predictions > ol > li");
    this.questions = [...asked].map((item, i) => ({ number: i + 1, item, answer: answers[i] }));
    for (const question of this.questions) {
      this.ask(question);
      if (question.answer) this.cover(question);
    }
    if (window.bookSaves)
      document.querySelector("#predict-first").append(
        made("p", { className: "prediction-tools" }, button("Save my answers", () => this.save()),
          " for ", made("code", { textContent: "./book progress --import FILE" })));
    this.show();
  }

  keep() {
    store(all => all.setItem(kept + this.chapter, JSON.stringify(this.state)));
    this.show();
  }

  // The form under a question. A locked answer is text: it can be read, not changed.
  ask(question) {
    const { number, item } = question;
    const field = made("textarea", { rows: 2, ariaLabel: `Your answer to question ${number}` });
    const lock = button("Lock my answer", () => {
      const text = field.value.replace(/\s+/g, " ").trim();
      if (!text) return field.focus();
      const now = new Date(Date.now() - 60000 * new Date().getTimezoneOffset()).toISOString();
      this.state.answers[number] = { text, when: now.slice(0, 16).replace("T", " ") };
      this.keep();
      return locked.focus();
    });
    const locked = made("p", { className: "locked", tabIndex: -1 });
    Object.assign(question, { field, lock, locked });
    item.append(made("div", { className: "prediction" }, field, lock, locked));
  }

  // Covers an answer until its question is answered or opened; beside it stands what was said.
  cover(question) {
    const { answer, number } = question, you = made("p", { className: "compared" });
    const body = made("div", { className: "covered", tabIndex: -1 }, ...answer.childNodes, you);
    const seal = made("div", { className: "seal" },
      made("p", {}, "First ",
        made("a", { href: "#predict-first", textContent: "lock in your own" }),
        ", or "),
      button("open it anyway", () => {
        this.state.opened.push(number);
        this.keep();
        body.focus();
      }));
    answer.append(seal, body);
    Object.assign(question, { seal, body, you });
  }

  show() {
    for (const { number, field, lock, locked, seal, body, you } of this.questions) {
      const answer = this.state.answers[number];
      field.hidden = lock.hidden = Boolean(answer);
      locked.hidden = !answer;
      locked.textContent = answer ? `You, ${answer.when}: ${answer.text}` : "";
      if (!seal) continue;
      you.hidden = !answer;
      you.textContent = locked.textContent;
      seal.hidden = Boolean(answer) || this.state.opened.includes(number);
      body.hidden = !seal.hidden;
    }
  }

  // The answers of all chapters, as my/NN_name/predictions, each behind a line with its chapter.
  file() {
    const found = store(all => Object.keys(all).filter(key => key.startsWith(kept)).sort()
      .map(key => [key.slice(kept.length), JSON.parse(all.getItem(key))]));
    return (found || [[this.chapter, this.state]]).map(([chapter, { answers }]) => {
      const lines = Object.entries(answers).map(([number, { text }]) => `${number}. ${text}\n`);
      if (!lines.length) return "";
      return `## ${chapter}\n# ${Object.values(answers)[0].when}\n${lines.join("")}`;
    }).join("");
  }
  save() {
    const file = URL.createObjectURL(new Blob([this.file()], { type: "text/plain" }));
    made("a", { download: "predictions.txt", href: file }).click();
    URL.revokeObjectURL(file);
  }
}

const chapter = location.pathname.match(/chapters\/(\w+)\/README/)?.[1];
const asked = document.querySelectorAll("#predict-first > ol > li");
if (chapter && asked.length) window.bookPredictions = new Predictions(chapter, asked);
