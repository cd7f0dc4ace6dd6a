// Predict first: a form under each question. Its answer in "Your predictions" stays covered until the reader has locked one, or
// opens it anyway. Nothing else is ever covered. Answers stay in this browser; on a site made at home, a button saves them.
"use strict";

const predictionKey = chapter => `ddp-by-hand/${chapter}`;

// A browser may refuse to keep anything for a page from a folder: then answers live as long as the page.
const keptInstead = new Map();
function readPredictions(chapter) {
  try {
    return JSON.parse(localStorage.getItem(predictionKey(chapter))) || { answers: {}, opened: [] };
  } catch {
    return keptInstead.get(chapter) || { answers: {}, opened: [] };
  }
}
function keepPredictions(chapter, state) {
  keptInstead.set(chapter, state);
  try {
    localStorage.setItem(predictionKey(chapter), JSON.stringify(state));
  } catch {
    // It is in keptInstead.
  }
}

function made(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// The answers of all chapters, in the form of my/NN_name/predictions, each behind a line that names its chapter.
function predictionsFile() {
  const chapters = new Map(keptInstead);
  try {
    for (const key of Object.keys(localStorage))
      if (key.startsWith("ddp-by-hand/")) chapters.set(key.slice("ddp-by-hand/".length), JSON.parse(localStorage.getItem(key)));
  } catch {
    // Those of this page are known.
  }
  let text = "";
  for (const [chapter, { answers }] of [...chapters].sort()) {
    const locked = Object.entries(answers);
    if (locked.length) text += `## ${chapter}\n# ${locked[0][1].when}\n` + locked.map(([number, { text }]) => `${number}. ${text}\n`).join("");
  }
  return text;
}

function savePredictions() {
  const link = made("a", { download: "predictions.txt", href: URL.createObjectURL(new Blob([predictionsFile()], { type: "text/plain" })) });
  link.click();
  URL.revokeObjectURL(link.href);
}

class Predictions {
  constructor({ chapter, questions, saves }) {
    this.chapter = chapter;
    this.questions = questions;
    this.state = readPredictions(chapter);
    const asked = document.querySelectorAll("#predict-first > ol > li");
    const answers = document.querySelectorAll("#your-predictions > ol > li");
    questions.forEach((question, i) => {
      question.item = asked[i];
      question.answer = answers[i];
      this.ask(question);
      if (question.answer) this.cover(question);
    });
    if (saves) document.querySelector("#predict-first").append(made("p", { className: "prediction-tools" },
      this.button("Save my answers", savePredictions),
      " for ", made("code", { textContent: "./book progress --import FILE" })));
    this.show();
  }

  button(text, action) {
    const button = made("button", { type: "button", textContent: text });
    button.addEventListener("click", action);
    return button;
  }

  isOpen(question) {
    return question.number in this.state.answers || this.state.opened.includes(question.number);
  }

  keep() {
    keepPredictions(this.chapter, this.state);
    this.show();
  }

  // The form under a question. A locked answer is text: it can be read, not changed.
  ask(question) {
    const field = made("textarea", { rows: 2, ariaLabel: `Your answer to question ${question.number}` });
    const lock = this.button("Lock my answer", () => {
      const text = field.value.replace(/\s+/g, " ").trim();
      if (!text) return field.focus();
      const now = new Date(Date.now() - 60000 * new Date().getTimezoneOffset()).toISOString();
      this.state.answers[question.number] = { text, when: now.slice(0, 16).replace("T", " ") };
      this.keep();
      return question.item.querySelector(".locked").focus();
    });
    const locked = made("p", { className: "locked", tabIndex: -1 });
    question.form = made("div", { className: "prediction" }, field, lock, locked);
    question.item.append(question.form);
  }

  // Covers an answer until its question is answered or opened.
  cover(question) {
    const { answer, number } = question, body = made("div", { className: "covered", tabIndex: -1 }, ...answer.childNodes);
    const seal = made("div", { className: "seal" },
      made("p", {}, "First ", made("a", { href: "#predict-first", textContent: "lock in your own" }), ", or "),
      this.button("open it anyway", () => {
        this.state.opened.push(number);
        this.keep();
        body.focus();
      }));
    answer.append(seal, body);
    Object.assign(question, { seal, body });
  }

  show() {
    for (const question of this.questions) {
      const answer = this.state.answers[question.number];
      const [field, lock, locked] = question.form.children;
      field.hidden = lock.hidden = Boolean(answer);
      locked.hidden = !answer;
      locked.textContent = answer ? `You, ${answer.when}: ${answer.text}` : "";
      if (!question.answer) continue;
      this.compare(question, answer);
      question.seal.hidden = this.isOpen(question);
      question.body.hidden = !question.seal.hidden;
    }
  }

  // Beside the book's answer: what the reader said, and what was measured.
  compare(question, answer) {
    question.answer.querySelector(".compared")?.remove();
    const rows = [];
    if (answer) rows.push(["you", answer.text]);
    if (question.measured) rows.push(["measured, in the book's run", question.measured]);
    if (rows.length)
      question.answer.querySelector(".covered").append(made("dl", { className: "compared" },
        ...rows.map(([who, text]) => made("div", {}, made("dt", { textContent: who }), made("dd", { textContent: text })))));
  }
}

const predictionData = document.getElementById("book-predictions");
if (predictionData) window.bookPredictions = new Predictions(JSON.parse(predictionData.textContent));
