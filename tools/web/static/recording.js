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
  clear(height) {
    this.width = Math.max(300, Math.min(780, this.svg.parentElement.clientWidth - 24));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
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

class Recording {
  constructor(figure) {
    this.figure = figure;
    const scene = bookScenes[figure.dataset.scene];
    this.played = scene(readCsv(JSON.parse(figure.querySelector("script").textContent)));
    this.build();
    this.choose(0);
    new ResizeObserver(() => this.draw()).observe(figure);
  }

  build() {
    const picture = this.figure.querySelector("img");
    const button = (text, label, action) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text, ariaLabel: label });
      button.addEventListener("click", action);
      return button;
    };
    this.choices = Object.assign(document.createElement("select"), { ariaLabel: "which one" });
    this.choices.append(...this.played.map(({ label }) => new Option(label)));
    this.choices.hidden = this.played.length < 2;
    this.choices.addEventListener("change", () => this.choose(this.choices.selectedIndex));
    this.player = button("play", "play", () => this.play());
    this.slider = Object.assign(document.createElement("input"), { type: "range", min: 0, ariaLabel: "step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    const controls = document.createElement("div");
    controls.className = "controls";
    controls.append(this.choices, button("◀ back", "back", () => this.go(this.step - 1)), this.player,
      button("step ▶", "step", () => this.go(this.step + 1)), this.slider);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", picture.alt);
    this.canvas = new Canvas(svg);
    this.says = Object.assign(document.createElement("p"), { className: "says" });
    this.says.setAttribute("aria-live", "polite");
    this.legend = Object.assign(document.createElement("ul"), { className: "legend" });
    const from = Object.assign(document.createElement("p"), { className: "from" });
    from.textContent = (this.figure.dataset.made ? `Your own run of ${this.figure.dataset.made}.` : "The book's own run.") +
      " Keys: ← → Home End and space.";
    const drawn = document.createElement("details");
    drawn.append(Object.assign(document.createElement("summary"), { textContent: "The picture of all steps at once" }), picture.closest("a") || picture);
    this.figure.append(controls, svg, this.legend, this.says, from, drawn);
    this.figure.tabIndex = 0;
    this.figure.setAttribute("role", "group");
    this.figure.setAttribute("aria-label", `Recording: ${picture.alt}`);
    this.figure.addEventListener("keydown", event => this.key(event));
    this.swipe(svg);
  }

  key(event) {
    const actions = {
      ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.go(this.step + 1),
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
      if (Math.abs(moved) > 30) this.go(this.step + (moved < 0 ? 1 : -1));
      from = null;
    });
  }

  choose(index) {
    this.shown = this.played[index];
    this.last = this.shown.steps - 1;
    this.slider.max = this.last;
    this.legend.replaceChildren(...(this.shown.legend || []).map(([colour, text]) => {
      const entry = document.createElement("li"), mark = document.createElement("i");
      mark.style.background = colour;
      entry.append(mark, text);
      return entry;
    }));
    this.go(0);
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
      this.timer = setInterval(() => (this.step < this.last ? this.go(this.step + 1) : this.play()), Math.min(1000, 15000 / this.last));
    }
    this.player.textContent = this.timer ? "pause" : "play";
  }
}

for (const figure of document.querySelectorAll("figure.recording")) figure.recording = new Recording(figure);
