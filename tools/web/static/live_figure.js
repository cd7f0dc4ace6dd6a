// The figures in which chapter 02's kernels run (live.js): what the reader may choose, the picture of a turn, and the sentence for it.
"use strict";

const upTo = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => [String(first + i), first + i]);
const turnFields = [
  { name: "eachAccess", label: "a turn ends", options: [["where the thread must wait", false], ["after each access", true]] },
  { name: "order", label: "order", options: ["by hand", "forward", "reversed", "random"].map(order => [order, order]), first: "forward" },
  { name: "seed", label: "seed", options: upTo(0, 20), first: 3, of: ({ order }) => order === "random" },
];

// Each: the file, the fields of choices (`of` says when a field applies), what to start, which arrays are shown, in the order in
// which the program allocates them, a task, and which sum is right.
const livePrograms = {
  race: {
    fields: [
      { name: "kernel", label: "two threads add", options: [["1 and 2", "race"], ["1, several times, in two blocks", "ones"]] },
      { name: "additions", label: "times", options: upTo(1, 5), first: 3, of: ({ kernel }) => kernel === "ones" },
      { name: "atomic", label: "by", options: [["sum = sum + mine", 0], ["atomicAdd(sum, mine)", 1]] }, ...turnFields,
    ],
    start: ({ kernel, atomic, additions }) => [kernel, atomic, additions],
    arrays: [{ name: "sum" }],
    task: ["Can you make the sum 1? Give the turns by hand.", (sum, races) => sum === 1 && races],
    right: ({ kernel, additions }) => (kernel === "race" ? 3 : 2 * additions),
  },
  tree: {
    fields: [
      { name: "kernel", label: "kernel", options: [["sum_by_halves", 1], ["sum_by_neighbours", 0]] },
      { name: "threads", label: "threads", options: [2, 4, 8, 16, 32].map(count => [String(count), count]), first: 8 }, ...turnFields,
    ],
    start: ({ kernel, threads }) => ["tree", kernel, threads],
    arrays: [{ name: "values" }, { name: "sum", isNew: true }],
    shared: { name: "partial", isNew: true },
    task: ["Take one barrier away. In which order does the sum become 11?", (sum, races) => sum === 11 && races],
    right: ({ threads }) => threads * (threads + 1) / 2,
  },
};

// ---- Words

// What is said several times is said once: "a", "b twice", "c 3 times".
const counted = texts => unique(texts).map(text => {
  const times = texts.filter(other => other === text).length;
  return times === 1 ? text : `${text} ${times === 2 ? "twice" : `${times} times`}`;
});
const doing = {
  read: list => `reads ${listed(counted(list.map(({ place, after }) => `${place} (${after})`)))}`,
  write: list => `writes ${listed(counted(list.map(({ place, after }) => `${after} to ${place}`)))}`,
  atomic: list => list.map(({ place, before, after }) => `changes ${place} from ${before} to ${after} in one access`).join(", "),
};
// Returns what was done, in the order in which it was: "reads a (1) and b (2), writes 3 to c".
function accessesInWords(accesses) {
  const groups = [];
  for (const access of accesses) {
    if (groups.at(-1)?.[0].kind === access.kind) groups.at(-1).push(access);
    else groups.push([access]);
  }
  return groups.map(list => doing[list[0].kind](list)).join(", ");
}
const endings = {
  waits: line => [`waits at the barrier of line ${line}`], sleeps: () => ["sleeps, so another one has its turn"],
  ends: () => ["has come to its end"], "goes on": () => [],
};

const glyphs = { waits: "‖", sleeps: "z", ends: "✓" };
const states = { waits: "waits at a barrier", sleeps: "sleeps", ends: "has come to its end" };
const strokes = { read: blue, write: vermilion, atomic: green };

const compiled = canSuspend() && WebAssembly.compile(Uint8Array.from(atob(bookKernels), letter => letter.charCodeAt(0)));

class LiveFigure extends Player {
  constructor(figure) {
    super(figure, `The kernels of ${figure.dataset.program}.cu, which run in this page`);
    this.program = livePrograms[figure.dataset.program];
    this.file = `chapters/02_kernels/${figure.dataset.program}.cu`;
    this.source = JSON.parse(figure.querySelector("script").textContent);
    this.recorded = compiled ? null : bookRuns[figure.dataset.program];
    this.without = new Set(this.recorded?.settings.without);  // the lines whose barriers are taken away
    this.values = this.recorded?.settings || Object.fromEntries(this.program.fields.map(({ name, options, first }) => [name, first ?? options[0][1]]));
    this.build();
    this.start();
  }

  // ---- What the reader may choose

  build() {
    const controls = (more = {}) => made("div", { className: "controls", ...more });
    this.fields = this.program.fields.map(field => {
      const { label, select } = chooser(field.label, field.options.map(([text]) => text), () =>
        this.choose({ [field.name]: field.options[select.selectedIndex][1] }));
      select.name = field.name;
      return { field, label, select };
    });
    const form = controls(), name = this.linkTo("", this.file.split("/").at(-1));
    form.append(...this.fields.map(({ label }) => label));
    this.barriers = controls();
    const caption = compiled ? "Run it here: " : "This browser can't run the kernel here; one with JavaScript Promise Integration can: Chromium " +
      "since 137, Firefox since 153, Safari since 27. This is a recorded run of ";
    this.figure.prepend(made("figcaption", {}, caption, name), form, this.barriers);
    this.code = made("pre", { className: "kernel", tabIndex: 0, ariaLabel: "the kernel, and who is on which line" });
    this.canvas.svg.before(this.code);
    this.hand = controls({ className: "controls hand", role: "group", ariaLabel: "whose turn it is" });
    this.says.before(this.hand);
    if (!this.recorded) this.says.before(made("p", { className: "task" }, this.program.task[0]));
    this.from.textContent = "The book's own file, compiled for this page.";
    this.figure.hidden = false;
  }
  linkTo(place, text) {
    const { content_root: root } = document.documentElement.dataset;
    return made("a", { href: `${root}source/${this.file}.html${place}`, textContent: text });
  }
  choose(values) {
    Object.assign(this.values, values);
    return this.start();
  }

  // Boxes for the barriers that this run has come to. They stay as they are while it has the same ones, so that they keep the focus.
  offerBarriers() {
    const lines = [...this.run.lines].sort((a, b) => a - b);
    if (this.barriers.dataset.lines === String(lines)) return;
    this.barriers.dataset.lines = lines;
    this.barriers.hidden = !lines.length;
    this.barriers.replaceChildren(...lines.map(line => {
      const name = `the barrier of line ${line}`, checked = !this.without.has(line);
      const box = made("input", { type: "checkbox", checked, ariaLabel: name });
      box.addEventListener("change", () => {
        this.without[box.checked ? "delete" : "add"](line);
        this.start();
      });
      return made("label", {}, box, " the barrier of ", this.linkTo(`#L${line}`, `line ${line}`));
    }));
  }

  // The lines of the kernel in which threads have been. Before each stand the numbers of the threads that are there.
  offerLines() {
    const been = this.run.turns.flatMap(({ standsAt }) => standsAt).filter(Boolean).sort((a, b) => a - b);
    const first = this.source.slice(0, been[0]).findLastIndex(line => line.startsWith("__global__"));
    const lines = this.source.slice(first, 1 + this.source.indexOf("}", first));
    this.code.hidden = !been.length;
    this.code.replaceChildren(...this.code.hidden ? [] : lines.map((text, i) => {
      const line = made("span", { textContent: `${text}\n` });
      line.dataset.line = first + i + 1;
      return line;
    }));
  }
  markLines({ standsAt = [], states, who } = {}) {
    for (const line of this.code.children) {
      const there = this.run.threads.filter(({ number }) =>
        standsAt[number] === Number(line.dataset.line) && (number === who || states[number] !== "ends"));
      const numbers = there.map(({ block, index }) => (this.run.threads.at(-1).block ? `${block}.${index}` : index));
      line.dataset.threads = numbers.length > 4 ? `${numbers[0]} … ${numbers.at(-1)}` : numbers.join(" ");
      line.className = there.some(({ number }) => number === who) ? "shown" : "";
    }
  }

  // By hand: a button for each thread.
  offerTurns() {
    const isByHand = this.values.order === "by hand";
    const names = this.run.threads.map(({ number }) => this.nameOf(number));
    this.hand.hidden = !isByHand;
    if (!isByHand || this.hand.dataset.names === String(names)) return;
    this.hand.dataset.names = names;
    this.hand.replaceChildren(...names.map((name, number) => button(name, () => this.take(number))));
  }
  // Gives the turn after the shown step to `number`, if it could have it.
  take(number) {
    const offer = this.run.offers.findIndex(({ turns }) => turns === this.step);
    if (!this.run.offers[offer]?.candidates.includes(number)) return undefined;
    return this.start([...this.choices.slice(0, offer), number]);
  }

  // ---- The run

  // Runs the program from its beginning; by hand: as far as the reader has said whose turn it is.
  async start(choices = []) {
    const run = this.recorded || new LiveRun(await compiled, this.program, { ...this.values, without: [...this.without], choices });
    this.asked = run;
    await run.start?.(...this.program.start(this.values)).catch(error => { run.failed = error.message; });
    if (run !== this.asked) return;  // the reader has asked for another one since
    this.run = run;
    this.choices = choices;
    for (const { field, label, select } of this.fields) {
      const chosen = this.values[field.name];
      select.selectedIndex = field.options.findIndex(([, value]) => value === chosen);
      label.hidden = Boolean(field.of && !field.of(this.values));
    }
    this.offerBarriers();
    this.offerTurns();
    this.offerLines();
    const legend = Object.entries({ read: "read", write: "written", atomic: "changed by an atomic" }).map(([kind, text]) => [strokes[kind], text]);
    legend.push(...Object.entries(states).map(([state, text]) => ["", `${glyphs[state]} ${text}`]));
    this.show({
      steps: run.turns.length + 1, height: width => this.draft(width).height, draw: (canvas, step) => this.drawTurn(canvas, step),
      says: step => this.sentence(step), legend,
    }, run.turns.length);
    if (this.recorded) for (const field of this.figure.querySelectorAll("select, input[type=checkbox]")) field.disabled = true;
    this.figure.live = this;
  }
  go(step) {
    super.go(step);
    this.markLines(this.run.turns[this.step - 1]);
    const candidates = this.run.offers.find(({ turns }) => turns === this.step)?.candidates || [];
    [...this.hand.children].forEach((button, number) => { button.ariaDisabled = !candidates.includes(number); });
  }
  forward() {
    const next = this.step === this.last && this.run.open;
    return next ? this.take(next[0]) : super.forward();
  }

  // ---- The picture

  // Returns what stands where in a picture of this width: rows of cells.
  draft(width) {
    const { run } = this, left = 62, fits = Math.floor((width - left) / 30), size = width < 500 ? 30 : 40;
    const rows = [];
    let y = 26;
    const add = (label, count, high, entry) => {
      const most = count > fits ? 2 ** Math.floor(Math.log2(fits)) : Math.min(count, 16);
      for (let first = 0; first < count; first += most, y += high + 4)
        rows.push({ ...entry, label: first ? "" : label, first, cells: Math.min(most, count - first), y, high, size });
      y += 10;
    };
    const blocks = run.threads.length ? run.threads.at(-1).block + 1 : 0, size_of_block = run.threads.length / blocks;
    for (let block = 0; block < blocks; block++)
      add(blocks > 1 ? `block ${block}` : "threads", size_of_block, 34, { threads: run.threads.slice(block * size_of_block, (block + 1) * size_of_block) });
    for (const array of run.arrays) add(array.name, array.begins.length, 26, { array });
    return { rows, left, size, height: y };
  }
  drawTurn(canvas, step) {
    const { rows, left, size } = this.draft(canvas.width);
    const turn = this.run.turns[step - 1];
    canvas.text(0, 14, `turn ${step} of ${this.last}`, { "font-weight": 700 });
    for (const row of rows) {
      canvas.text(0, row.y + row.high / 2 + 5, row.label);
      for (let i = 0; i < row.cells; i++) {
        const x = left + i * size, index = row.first + i;
        canvas.box(x, row.y, size - 4, row.high, "#8881", "", { stroke: "#8888" });
        if (row.array) this.drawCell(canvas, x, row, index, turn);
        else this.drawThread(canvas, x, row, row.threads[index], turn);
      }
    }
  }
  drawCell(canvas, x, { array, y, high, size }, index, turn) {
    const value = turn ? turn.memory[array.name][index] : array.begins[index];
    const kinds = new Set(turn?.accesses.filter(access => access.array === array.name && access.index === index).map(({ kind }) => kind));
    [...kinds].forEach((kind, i) => canvas.box(x + 1 + 3 * i, y + 1 + 3 * i, size - 6 - 6 * i, high - 2 - 6 * i, "none", "", { stroke: strokes[kind], "stroke-width": 2.5 }));
    canvas.text(x + size / 2 - 2, y + 18, value ?? "", { "text-anchor": "middle", "font-size": 12 });
  }
  drawThread(canvas, x, { y, high, size }, thread, turn) {
    if (turn?.who === thread.number) canvas.box(x + 1, y + 1, size - 6, high - 2, "#8884", "", { stroke: "currentColor", "stroke-width": 2.5 });
    canvas.text(x + size / 2 - 2, y + 14, thread.index, { "text-anchor": "middle", "font-size": 12 });
    canvas.text(x + size / 2 - 2, y + 28, glyphs[turn?.states[thread.number]] || "", { "text-anchor": "middle", "font-size": 11 });
  }

  // ---- The sentence

  nameOf(number) {
    const { block, index } = this.run.threads[number];
    return `thread ${index}${this.run.threads.at(-1).block ? ` of block ${block}` : ""}`;
  }
  sentence(step) {
    const { run, program } = this, isEnd = step === this.last;
    const words = [step ? this.turnInWords(run.turns[step - 1]) : "No thread has had a turn yet."];
    if (isEnd && run.failed) words.push(run.failed);
    if (isEnd && run.sum !== undefined) words.push(`The sum is ${run.sum}; right is ${program.right(this.values)}.`, this.racesInWords());
    if (isEnd && !this.recorded && program.task[1](run.sum, this.races())) words.push("You have solved the task.");
    if (isEnd && run.open) words.push("Whose turn is it now?");
    return words.filter(Boolean).join(" ");
  }
  turnInWords({ who, accesses, how, line }) {
    const name = this.nameOf(who), parts = [accessesInWords(accesses), ...endings[how](line)].filter(Boolean);
    const race = accesses.find(({ racesWith }) => racesWith !== undefined);
    const raceWords = race ? ` What it does to ${race.place} races with ${this.nameOf(race.racesWith)}: nothing puts one before the other.` : "";
    return `${name[0].toUpperCase()}${name.slice(1)} ${listed(parts)}.${raceWords}`;
  }
  races() {
    return this.run.turns.flatMap(({ accesses }) => accesses.filter(({ racesWith }) => racesWith !== undefined)).length;
  }
  racesInWords() {
    const races = this.races();
    return races ? `${races} ${races > 1 ? "accesses race" : "access races"}: in another order the result may be another one.` : "Nothing races.";
  }
}

for (const figure of document.querySelectorAll("figure.live")) new LiveFigure(figure);
