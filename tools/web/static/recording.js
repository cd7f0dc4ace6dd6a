// The viewer of recordings: steps through a CSV file that a run has written, by buttons, keys, a slider, and swipes. What a step
// looks like, and the sentence that says it, is a scene's (scenes.js).
"use strict";

// Reads CSV, with quotes, into objects by column; what looks like a number is one.
function readCsv(text) {
  const lines = text.trim().split("\n").map(line =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain));
  const [names, ...rows] = lines;
  const value = word => (word !== "" && Number.isFinite(Number(word)) ? Number(word) : word);
  return rows.map(row => Object.fromEntries(names.map((name, i) => [name, value(row[i])])));
}

// What a scene draws on: units are pixels, so that letters keep their size in a narrow window.
class Canvas {
  constructor(svg) {
    this.svg = svg;
  }
  // `height` is a number, or says how high a picture of some width is.
  clear(height) {
    this.width = Math.max(300, Math.min(780, this.svg.parentElement.clientWidth - 24));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${typeof height === "function" ? height(this.width) : height}`);
    this.svg.replaceChildren();
  }
  add(name, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    this.svg.append(element);
    return element;
  }
  text(x, y, text, more = {}) {
    return this.add("text", { x, y, "font-size": 13, ...more }, text);
  }
  // A box that says what it is: under the pointer, by a title.
  box(x, y, width, height, fill, says = "", more = {}) {
    const box = this.add("rect", { x, y, width: Math.max(0, width), height, fill, ...more });
    if (says) {
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = says;
      box.append(title);
    }
    return box;
  }
}

// Steps through what is shown: a recording, or what a kernel has just done (live_figure.js).
class Player {
  static keys = "Keys: ← → Home End and space.";
  constructor(figure, label, choices = []) {
    this.figure = figure;
    const button = (text, label, action) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text, ariaLabel: label });
      button.addEventListener("click", action);
      return button;
    };
    this.player = button("play", "play", () => this.play());
    this.slider = Object.assign(document.createElement("input"), { type: "range", min: 0, ariaLabel: "step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    const controls = document.createElement("div");
    controls.className = "controls";
    controls.append(...choices, button("◀ back", "back", () => this.go(this.step - 1)), this.player,
      button("step ▶", "step", () => this.forward()), this.slider);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    this.canvas = new Canvas(svg);
    this.says = Object.assign(document.createElement("p"), { className: "says" });
    this.says.setAttribute("aria-live", "polite");
    this.legend = Object.assign(document.createElement("ul"), { className: "legend" });
    this.from = Object.assign(document.createElement("p"), { className: "from" });
    figure.append(controls, svg, this.legend, this.says, this.from);
    figure.classList.add("player");
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute("aria-label", label);
    figure.addEventListener("keydown", event => this.key(event));
    this.swipe(svg);
    new ResizeObserver(() => this.shown && this.draw()).observe(figure);
  }

  key(event) {
    const actions = {
      ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.forward(),
      Home: () => this.go(0), End: () => this.go(this.last), " ": () => this.play(),
    };
    if (!actions[event.key] || event.target !== this.figure || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  swipe(svg) {
    let from = null;
    svg.addEventListener("pointerdown", event => { from = event.clientX; });
    svg.addEventListener("pointerup", event => {
      const moved = event.clientX - (from ?? event.clientX);
      if (Math.abs(moved) > 30) (moved < 0 ? this.forward() : this.go(this.step - 1));
      from = null;
    });
  }

  show(shown, step) {
    this.shown = shown;
    this.last = this.shown.steps - 1;
    this.slider.max = this.last;
    this.legend.replaceChildren(...(this.shown.legend || []).map(([colour, text]) => {
      const entry = document.createElement("li"), mark = document.createElement("i");
      mark.style.background = colour;
      entry.append(...(colour ? [mark] : []), text);
      return entry;
    }));
    this.go(step);
  }
  forward() {
    this.go(this.step + 1);
  }

  go(step) {
    this.step = Math.min(this.last, Math.max(0, step));
    this.slider.value = this.step;
    this.draw();
    this.says.textContent = this.shown.says(this.step);
    this.slider.setAttribute("aria-valuetext", this.says.textContent);
  }

  draw() {
    this.canvas.clear(this.shown.height);
    this.shown.draw(this.canvas, this.step);
  }

  // Takes about fifteen seconds for many steps, and one for each of few.
  play() {
    if (this.timer) {
      clearInterval(this.timer);
      this.timer = null;
    } else {
      if (this.step === this.last) this.go(0);
      this.timer = setInterval(() => (this.step < this.last ? this.forward() : this.play()), Math.min(1000, 15000 / this.last));
    }
    this.player.textContent = this.timer ? "pause" : "play";
  }
}

class Recording extends Player {
  constructor(figure) {
    const picture = figure.querySelector("img"), choices = Object.assign(document.createElement("select"), { ariaLabel: "which one" });
    super(figure, `Recording: ${picture.alt}`, [choices]);
    const scene = bookScenes[figure.dataset.scene];
    const all = [...figure.querySelectorAll("script")].flatMap(run =>
      scene(readCsv(JSON.parse(run.textContent))).map(play => ({ ...play, made: run.dataset.made })));
    // A reader's own run comes first, and replaces the book's of the same name.
    this.played = all.filter((play, i) => all.findIndex(({ label }) => label === play.label) === i);
    choices.append(...this.played.map(({ label }) => new Option(label)));
    choices.hidden = this.played.length < 2;
    choices.addEventListener("change", () => this.choose(choices.selectedIndex));
    const drawn = document.createElement("details");
    drawn.append(Object.assign(document.createElement("summary"), { textContent: "The picture of all steps at once" }), picture.closest("a") || picture);
    figure.append(drawn);
    this.choose(0);
  }
  choose(index) {
    const play = this.played[index];
    this.from.textContent = `${play.made ? `Your own run of ${play.made}.` : "The book's own run."} ${Player.keys}`;
    this.show(play, 0);
  }
}

for (const figure of document.querySelectorAll("figure.recording")) figure.recording = new Recording(figure);
