// The viewer of recordings: plays a CSV file that a run has written by the clock, and steps through it by buttons, keys, and a
// slider. What a step looks like, and the sentence that says it, is a scene's (scenes.js).
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
    return this;
  }
  // `says` is what it is: under the pointer, by a title.
  add(name, attributes, text = "", says = "") {
    const make = name => document.createElementNS("http://www.w3.org/2000/svg", name), element = make(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    if (says) element.append(Object.assign(make("title"), { textContent: says }));
    this.svg.append(element);
    return element;
  }
  text(x, y, text, more = {}) {
    return this.add("text", { x, y, "font-size": 13, ...more }, text);
  }
  box(x, y, width, height, fill, says = "", more = {}) {
    return this.add("rect", { x, y, width: Math.max(0, width), height, fill, ...more }, "", says);
  }
}

// Steps through what is shown: a recording, or what a kernel has just done (live_figure.js).
class Player {
  constructor(figure, label, choices = []) {
    this.figure = figure;
    this.player = button("play", () => this.play());
    this.slider = made("input", { type: "range", min: 0, ariaLabel: "step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    Object.assign(svg, { role: "img", ariaLabel: label });
    this.canvas = new Canvas(svg);
    this.says = made("p", { className: "says", ariaLive: "polite" });
    this.legend = made("ul", { className: "legend" });
    this.from = made("p", { className: "from" });
    figure.append(
      made("div", { className: "controls" }, ...choices,
        button("◀ back", () => this.go(this.step - 1), "back"), this.player,
        button("step ▶", () => this.forward(), "step"), this.slider),
      svg, this.legend, this.says, this.from,
      made("p", { className: "from keys", textContent: "Keys: ← → Home End and space." }));
    figure.classList.add("player");
    Object.assign(figure, { tabIndex: 0, role: "group", ariaLabel: label });
    figure.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.shown && this.draw()).observe(figure);
  }

  key(event) {
    const actions = {
      ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.forward(),
      Home: () => this.go(0), End: () => this.go(this.last), " ": () => this.play(),
    };
    if (!actions[event.key] || event.target.matches(event.key === " " ? "button, input, select" : "input, select") || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  show(shown, step) {
    this.shown = shown;
    this.last = this.shown.steps - 1;
    this.slider.max = this.last;
    this.legend.replaceChildren(...(this.shown.legend || []).map(([colour, text]) => {
      const mark = made("i");
      mark.style.background = colour;
      return made("li", {}, ...(colour ? [mark] : []), text);
    }));
    this.go(step);
  }
  forward() { this.go(this.step + 1); }

  go(step) {
    this.step = Math.min(this.last, Math.max(0, step));
    this.slider.value = this.step;
    this.draw();
    this.says.textContent = this.shown.says(this.step);
    this.slider.setAttribute("aria-valuetext", this.says.textContent);
  }

  // `part` of the way to the next step.
  draw(part = 0) {
    this.shown.draw(this.canvas.clear(this.shown.height), this.step, part);
  }

  // Plays by the clock: a step takes the seconds that its scene says, or all fifteen of them together.
  play() {
    if (this.timer) return this.stop();
    if (this.step === this.last) this.go(0);
    const seconds = this.shown.seconds || (() => Math.min(1, 15 / this.last)), isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let since = performance.now();
    const frame = now => {
      for (; this.step < this.last && now - since >= 1000 * seconds(this.step); this.forward()) since += 1000 * seconds(this.step);
      if (this.step === this.last) return this.stop();
      const part = isCalm ? 0 : (now - since) / 1000 / seconds(this.step);
      this.draw(part);
      if (this.shown.seconds) this.says.textContent = this.shown.says(this.step, part);
      return (this.timer = requestAnimationFrame(frame));
    };
    this.player.textContent = this.player.ariaLabel = "pause";
    this.says.ariaLive = "off";
    return (this.timer = requestAnimationFrame(frame));
  }
  stop() {
    cancelAnimationFrame(this.timer);
    this.timer = null;
    this.player.textContent = this.player.ariaLabel = "play";
    this.says.ariaLive = "polite";
    this.go(this.step);
  }
}

// A list of values to choose from, with its label.
function chooser(name, values, changed) {
  const options = values.map(value => new Option(value));
  const select = made("select", { ariaLabel: name }, ...options);
  select.addEventListener("change", changed);
  return { label: made("label", {}, `${name} `, select), select };
}

// A picture, with a button over it that opens what plays in its place. `#ring:ranks=8,step=6` in the
// page's address opens the first run of this kind there.
class Recording extends Player {
  constructor(figure, picture) {
    const scene = bookScenes[figure.dataset.scene];
    const played = [...figure.querySelectorAll("script")].flatMap(run =>
      scene(readCsv(JSON.parse(run.textContent))));
    const words = ([name, value]) => (typeof value === "number" ? `${value} ${name}` : value);
    const titles = played.map(({ of }) => Object.entries(of).map(words).join(", "));
    const { label, select } = chooser("run", titles, () => this.choose(select.selectedIndex));
    label.hidden = played.length < 2;
    super(figure, `Recording: ${picture.alt}`, [label]);
    Object.assign(this, { played, select, name: figure.dataset.name });
    this.from.textContent = "The book's own run.";
    const summary = made("summary", { textContent: "The picture in print" });
    figure.append(made("details", {}, summary, picture));
    this.choose(0);
  }
  // Shows how a run ends.
  choose(index) {
    this.select.selectedIndex = index;
    this.show(this.played[index], this.played[index].steps - 1);
  }
  go(step) {
    super.go(step);
    if (!this.isOpened || this.timer) return;
    const state = Object.entries({ ...this.shown.of, step: this.step });
    const words = state.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    history.replaceState(null, "", `#${this.name}:${words.join(",")}`);
  }
  goTo(state) {
    const pairs = state.split(",").map(pair => pair.split("=").map(decodeURIComponent));
    const { step, ...wanted } = Object.fromEntries(pairs), asked = Object.entries(wanted);
    const fits = ({ of }) => asked.every(([name, value]) => String(of[name]) === value);
    this.choose(Math.max(0, this.played.findIndex(fits)));
    this.go(Number(step) || 0);
  }
}

function openRecording(figure) {
  figure.querySelector(".open")?.remove();
  return (figure.recording ||= new Recording(figure, figure.querySelector("img")));
}
for (const figure of document.querySelectorAll("figure.recording")) {
  const open = button("▶ play", () => {
    const recording = openRecording(figure);
    recording.isOpened = true;
    figure.focus();
    recording.go(0);
    recording.play();
  });
  open.className = "open";
  figure.append(open);
  // On the first screen it plays once, when it is seen; to whoever wants no motion it shows how it ends.
  if ("plays" in figure.dataset) new IntersectionObserver(([{ isIntersecting }], observer) => {
    if (!isIntersecting) return;
    observer.disconnect();
    const recording = openRecording(figure);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    recording.go(0);
    recording.play();
  }, { threshold: 0.6 }).observe(figure);
}
function openFromAddress() {
  const [, name, state] = location.hash.match(/^#(\w+):(.*)$/) || [], figure = name && document.querySelector(`figure.recording[data-name="${name}"]`);
  if (!figure) return;
  openRecording(figure).goTo(state);
  figure.recording.isOpened = true;
  figure.scrollIntoView();
}
window.addEventListener("hashchange", openFromAddress);
openFromAddress();
