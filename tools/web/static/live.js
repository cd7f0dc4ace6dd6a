// A run of one of chapter 02's programs in the page: its kernels, compiled from the book's own files (tools/web/live), and a scheduler
// for their threads. A CUDA thread is a call into WebAssembly that can be suspended; one that waits gives its turn to another.
// Each turn is kept as plain data: who had it, which memory it read and wrote, what it waits for, what all memory held afterwards.
"use strict";

const canSuspend = () => typeof WebAssembly === "object" && "Suspending" in WebAssembly && "promising" in WebAssembly;
const stackBytes = 16384;

// The line of the kernel that has called, if this browser's stacks say where in the module a call stands (Safari's don't).
const callingLine = () => [...Error().stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)].map(([, at]) => bookLines[parseInt(at, 16)]).find(Boolean);

// An array of ints that the page shows, and where it lies. If it `isNew`, nobody has given its cells a value before the kernel does.
class ShownArray {
  constructor({ name, isNew = false }, address, bytes, memory) {
    Object.assign(this, { name, address, memory });
    this.known = Array(bytes / 4).fill(!isNew);
    this.begins = [];
  }
  // Returns the cell's number, or undefined if the address is not in the array.
  indexOf(address) {
    const index = Math.floor((address - this.address) / 4);
    return index in this.known ? index : undefined;
  }
  cell(index) {
    return new Int32Array(this.memory.buffer, this.address)[index];
  }
  cells() {
    return this.known.map((isKnown, index) => (isKnown ? this.cell(index) : null));
  }
  placeOf(index) {
    return this.known.length > 1 ? `${this.name}[${index}]` : this.name;
  }
}

// `program` says which arrays are shown, in the order in which they are allocated. Settings: order ("forward", "reversed", "random",
// "by hand"), seed, eachAccess (a turn is one access to memory), without (the lines whose barriers are taken away), choices (whose turns
// by hand).
class LiveRun {
  constructor(module, program, settings) {
    Object.assign(this, { module, program, settings, turns: [], arrays: [], threads: [], lines: new Set(), offers: [] });
    this.luck = Math.imul(settings.seed, 0x9e3779b1);
    this.choices = [...settings.choices || []];
    this.unnamed = [...program.arrays];
  }

  // Returns when the program has ended, or when it is for the reader to say who is next: `open` then has those who could be.
  async start(name, ...numbers) {
    const page = {
      allocated: (address, bytes) => this.show(this.unnamed.shift(), address, bytes),
      runs: this.suspending((...launch) => this.runKernel(...launch)),
      barrier: this.suspending(line => this.barrier(line)),
      sleeps: this.suspending(() => this.sleep()),
      accesses: this.suspending((address, bytes, kind) => this.access(address, ["read", "write", "atomic"][kind])),
    };
    const nothing = new Proxy({}, { get: () => () => 0 });  // no clock, no files
    this.wasm = (await WebAssembly.instantiate(this.module, { page, wasi_snapshot_preview1: nothing })).exports;
    this.wasm._initialize();
    const ended = new Promise((resolve, reject) => Object.assign(this, { stop: resolve, fail: reject }));
    WebAssembly.promising(this.wasm[name])(...numbers).then(sum => { this.sum = sum; }).then(this.stop, this.fail);
    return ended;
  }
  // What is kept of a run, for browsers in which none can be.
  toJSON() {
    const { settings, turns, sum } = this, threads = this.threads.map(({ number, block, index }) => ({ number, block, index }));
    return { settings, turns, sum, threads, arrays: this.arrays.map(({ name, begins }) => ({ name, begins })), lines: [...this.lines], offers: [] };
  }

  // Makes of `call` what WebAssembly can call: if it returns a promise, its caller is suspended, and goes on with its own stack.
  suspending(call) {
    return new WebAssembly.Suspending((...values) => {
      const stack = this.wasm.__stack_pointer, pointer = stack.value, result = call(...values);
      return result?.then ? result.then(value => { stack.value = pointer; return value; }) : result;
    });
  }

  // Keeps the turn, with what all memory holds after it.
  endTurn(how, line) {
    const { turn, threads } = this;
    this.settle();
    this.turn = null;
    this.turns.push({ ...turn, how, line,
      standsAt: threads.map(({ line }) => line), states: threads.map(({ state }) => state),
      memory: Object.fromEntries(this.arrays.map(array => [array.name, array.cells()])) });
  }

  // ---- Memory

  show(array, address, bytes) {
    if (array) this.arrays.push(new ShownArray(array, address, bytes, this.wasm.memory));
  }
  access(address, kind) {
    this.settle();
    const array = this.turn && this.arrays.find(array => array.indexOf(address) !== undefined);
    if (!array) return undefined;
    const line = callingLine();
    const note = () => {
      this.running.line = line;
      const index = array.indexOf(address);
      array.known[index] ||= kind !== "read";
      this.turn.accesses.push({ array: array.name, index, place: array.placeOf(index), kind, before: array.cell(index),
        racesWith: this.raceOf(array, index, kind) });
    };
    const isOver = this.settings.eachAccess && this.turn.accesses.length;
    return isOver ? this.suspend("goes on").then(note) : note();
  }
  // An access is announced before it happens: its value is there at the thread's next call.
  settle() {
    const access = this.turn?.accesses.at(-1);
    if (access) access.after ??= this.arrays.find(({ name }) => name === access.array).cell(access.index);
  }
  // Returns the number of the thread that has touched the same place with nothing in between that puts its access before this one: neither a
  // barrier, nor that both are atomic, nor that both only read.
  raceOf(array, index, kind) {
    const thread = this.running;
    const place = `${array.name} ${index}`, here = this.touched.get(place) || [];
    this.touched.set(place, [...here, { thread, kind, meetings: thread.meetings }]);
    return here.find(other => other.thread !== thread && (other.kind !== kind || kind === "write") &&
      !(other.thread.block === thread.block && other.meetings < thread.meetings))?.thread.number;
  }

  // ---- Threads

  // Runs a kernel, all blocks at the same time.
  async runKernel(blocks, threads, shared, bytes) {
    if (this.program.shared) this.show(this.program.shared, shared, bytes);
    this.touched = new Map();
    this.come = new Map();  // block -> its threads that are at the barrier
    this.threads = Array.from({ length: blocks * threads }, (_, number) =>
      ({ number, block: Math.floor(number / threads), index: number % threads, state: "new", meetings: 0 }));
    this.stacks ??= (this.wasm.malloc((this.threads.length + 1) * stackBytes) + 15) & ~15;
    for (const array of this.arrays) array.begins = array.cells();
    this.ready = [];
    this.makeReady(this.settings.order === "reversed" ? [...this.threads].reverse() : this.threads);
    while (this.ready.length) {
      const thread = await this.next();
      this.ready = this.ready.filter(other => other !== thread);
      await this.giveTurn(thread);
    }
    if (this.threads.some(({ state }) => state !== "ends")) throw Error("Some threads wait at a barrier that others never reach.");
  }
  makeReady(threads) {
    const isRandom = this.settings.order === "random", places = new Map(threads.map(thread => [thread, isRandom ? this.random() : 0]));
    this.ready.push(...[...threads].sort((a, b) => places.get(a) - places.get(b)));
  }
  // Returns a number from 0 to 1: the same ones for the same seed.
  random() {
    this.luck = (Math.imul(this.luck, 1664525) + 1013904223) >>> 0;
    return this.luck / 2 ** 32;
  }
  next() {
    const { order, eachAccess } = this.settings;
    if (order === "by hand") return this.chosen(this.ready.map(thread => thread.number));
    return this.ready[order === "random" && eachAccess ? Math.floor(this.ready.length * this.random()) : 0];
  }
  // Returns the reader's choice. What has not been chosen yet is for the next run: this one stops here for good.
  chosen(candidates) {
    this.offers.push({ turns: this.turns.length, candidates });
    if (this.choices.length) return this.threads[this.choices.shift()];
    this.open = [...candidates].sort((a, b) => a - b);
    this.stop();
    return new Promise(() => {});
  }

  // Returns when the thread has ended or waits.
  giveTurn(thread) {
    this.turn = { who: thread.number, accesses: [] };
    this.running = thread;
    return new Promise(over => {
      thread.isOver = over;
      if (thread.goOn) return thread.goOn();
      this.wasm.__stack_pointer.value = this.stacks + (thread.number + 1) * stackBytes;
      return WebAssembly.promising(this.wasm.cuda_thread)(thread.block, thread.index).then(() => this.turnIsOver(thread, "ends")).catch(this.fail);
    });
  }
  turnIsOver(thread, state, line) {
    thread.state = state;
    if (state === "goes on" || state === "sleeps") this.ready.push(thread);
    if (state === "waits") this.meet(thread);
    this.endTurn(state, line);
    thread.isOver();
  }
  suspend(state, line) {
    const thread = this.running;
    return new Promise(goOn => {
      thread.goOn = goOn;
      this.turnIsOver(thread, state, line);
    });
  }
  barrier(line) {
    this.lines.add(line);
    this.running.line = line;
    if (this.settings.without?.includes(line)) return undefined;
    return this.suspend("waits", line);
  }
  sleep() {
    this.running.line = callingLine();
    return this.suspend("sleeps");
  }
  // Lets a block go on, in the order in which its threads have come, when the last of them has come to the barrier.
  meet(last) {
    const size = this.threads.filter(({ block }) => block === last.block).length, come = this.come.get(last.block) || [];
    this.come.set(last.block, [...come, last]);
    if (come.length + 1 < size) return;
    for (const thread of [...come, last]) Object.assign(thread, { state: "met", meetings: thread.meetings + 1 });
    this.come.delete(last.block);
    this.makeReady([...come, last]);
  }
}
