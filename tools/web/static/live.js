// A run of one of chapter 02's programs in the page: its kernels, compiled from the book's own files (tools/web/live), and a scheduler
// for their threads. A CUDA thread is a call into WebAssembly that can be suspended; one that waits gives its turn to another.
// Each turn is kept: who had it, which memory it read and wrote, what it waits for, and what all memory held afterwards.
"use strict";

const canSuspend = () => typeof WebAssembly === "object" && "Suspending" in WebAssembly && "promising" in WebAssembly;
const stackBytes = 16384;
const accessKinds = ["read", "write", "atomic"];

// The line of the kernel that has called, if this browser's stacks say where in the module a call stands (Safari's don't).
const callingLine = () => [...Error().stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)].map(([, at]) => bookLines[parseInt(at, 16)]).find(Boolean);

// The random order of the book's runtime on a CPU (common/cuda_on_cpu/src/block.cpp): the same seed gives the same order.
class RandomOrder {
  static bits = value => BigInt.asUintN(64, value);
  constructor(seed) {
    this.state = RandomOrder.bits(BigInt(seed) * 0x9E3779B97F4A7C15n + 1n);
  }
  static next(holder) {
    let state = holder.state;
    state ^= state >> 12n;
    state ^= RandomOrder.bits(state << 25n);
    state ^= state >> 27n;
    holder.state = state;
    return RandomOrder.bits(state * 0x2545F4914F6CDD1Dn);
  }
  // In place, each item with one that is not behind it.
  shuffle(items) {
    for (let i = items.length; i > 1; i--) {
      const j = this.below(i);
      [items[i - 1], items[j]] = [items[j], items[i - 1]];
    }
  }
  below(count) {
    return Number(RandomOrder.next(this) % BigInt(count));
  }
  // A coin decides whether the lanes of a warp stay together.
  sort(threads) {
    const salt = RandomOrder.next(this), byWarps = RandomOrder.next(this) >> 63n !== 0n;
    const place = number => RandomOrder.next({ state: RandomOrder.bits(salt + RandomOrder.bits(BigInt(number)) * 0x9E3779B97F4A7C15n) });
    const warp = thread => Math.floor(thread.index / 32);
    const compare = (a, b) => (a < b ? -1 : Number(a > b));
    threads.sort((a, b) => byWarps && warp(a) !== warp(b) ? compare(place(~warp(a)), place(~warp(b))) : compare(place(a.index), place(b.index)));
  }
}

// An array that the page shows, and where it lies. If it `isNew`, nobody has given its cells a value before the kernel does.
class ShownArray {
  constructor({ name, type = "int", isNew = false }, address, bytes, memory) {
    Object.assign(this, { name, type, address, bytes, memory });
    this.cellBytes = type === "place" ? 8 : 4;
    this.known = Array(bytes / this.cellBytes).fill(!isNew);
    this.begins = [];
  }
  // Returns the cell's number, or undefined if the address is not in the array.
  indexOf(address) {
    const at = address - this.address;
    return at >= 0 && at < this.bytes ? Math.floor(at / this.cellBytes) : undefined;
  }
  cell(index) {
    const view = new DataView(this.memory.buffer, this.address + index * this.cellBytes, this.cellBytes);
    if (this.type === "float") return view.getFloat32(0, true);
    return this.type === "int" ? view.getInt32(0, true) : [view.getInt32(0, true), view.getInt32(4, true)];
  }
  cells() {
    return this.known.map((isKnown, index) => (isKnown ? this.cell(index) : null));
  }
}

// `program` says which arrays are shown, in the order in which they are allocated. Settings: order ("forward", "reversed", "random",
// "hand"), seed, eachAccess (a turn is one access to memory), without (the lines whose barriers are taken away), choices (whose turns
// by hand).
class LiveRun {
  constructor(module, program, settings) {
    Object.assign(this, { module, program, settings, turns: [], arrays: [], threads: [], lines: new Set(), offers: [] });
    this.choices = [...settings.choices || []];
    this.unnamed = [...program.arrays];
  }

  // Returns when the program has ended, or when it is for the reader to say who is next: `open` then has those who could be.
  async start(name, ...numbers) {
    const page = {
      allocated: (address, bytes) => this.show(this.unnamed.shift(), address, bytes),
      fails: what => { throw Error(this.text(what)); },
      runs: this.suspending((...launch) => this.runKernel(...launch)),
      barrier: this.suspending(line => this.barrier(line)),
      sleeps: this.suspending(() => this.sleep()),
      accesses: this.suspending((address, bytes, kind) => this.access(address, accessKinds[kind])),
    };
    const nothing = new Proxy({}, { get: () => () => 0 });  // no clock, no files
    this.wasm = (await WebAssembly.instantiate(this.module, { page, wasi_snapshot_preview1: nothing })).exports;
    this.wasm._initialize();
    const ended = new Promise((resolve, reject) => Object.assign(this, { stop: resolve, fail: reject }));
    WebAssembly.promising(this.wasm[name])(...numbers).then(at => this.keepResult(at)).then(this.stop, this.fail);
    await ended;
    return this;
  }
  keepResult(at) {
    const ints = new Int32Array(this.wasm.memory.buffer, at);
    this.result = [...ints.slice(1, 1 + ints[0])];
  }
  text(at) {
    const bytes = new Uint8Array(this.wasm.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
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
      memory: new Map(this.arrays.map(array => [array.name, array.cells()])) });
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
      this.turn.accesses.push({ array, index, kind, before: array.cell(index), racesWith: this.raceOf(array, index, kind) });
    };
    const isOver = this.settings.eachAccess && this.turn.accesses.length;
    return isOver ? this.suspend("goes on").then(note) : note();
  }
  // An access is announced before it happens: its value is there at the thread's next call.
  settle() {
    const access = this.turn?.accesses.at(-1);
    if (access) access.after ??= access.array.cell(access.index);
  }
  // Returns the thread that has touched the same place with nothing in between that puts its access before this one: neither a
  // barrier, nor that both are atomic, nor that both only read.
  raceOf(array, index, kind) {
    const thread = this.turn.who;
    const place = `${array.name} ${index}`, here = this.touched.get(place) || [];
    this.touched.set(place, [...here, { thread, kind, meetings: thread.meetings }]);
    return here.find(other => other.thread !== thread && (other.kind !== kind || kind === "write") &&
      !(other.thread.block === thread.block && other.meetings < thread.meetings))?.thread;
  }

  // ---- Threads

  // Runs a kernel: block after block, as the book's runtime on a CPU does, or all at once.
  async runKernel(blocks, threads, cooperative, shared, bytes) {
    const { order, eachAccess, seed } = this.settings;
    if (this.program.shared) this.show(this.program.shared, shared, bytes);
    this.random = order === "random" && new RandomOrder(seed);
    this.touched = new Map();
    this.come = new Map();  // block -> its threads that are at the barrier
    this.threads = Array.from({ length: blocks * threads }, (_, number) =>
      ({ number, block: Math.floor(number / threads), index: number % threads, state: "new", meetings: 0 }));
    this.stacks ??= (this.wasm.malloc((this.threads.length + 1) * stackBytes) + 15) & ~15;
    let groups = Array.from({ length: blocks }, (_, block) => this.threads.filter(thread => thread.block === block));
    if (this.random) this.random.shuffle(groups);
    if (order === "reversed") groups = groups.reverse().map(group => group.reverse());
    for (const array of this.arrays) array.begins = array.cells();
    if (cooperative || eachAccess || order === "hand") groups = [groups.flat()];
    for (const group of groups) await this.runTogether(group);
  }
  async runTogether(threads) {
    this.ready = [];
    this.makeReady(threads);
    while (this.ready.length) {
      const thread = await this.next();
      this.ready = this.ready.filter(other => other !== thread);
      await this.giveTurn(thread);
    }
    if (threads.some(({ state }) => state !== "ends")) throw Error("Some threads wait at a barrier that others never reach.");
  }
  makeReady(threads) {
    this.ready.push(...threads);
    if (this.random) this.random.sort(this.ready);
  }
  next() {
    const { order, eachAccess } = this.settings;
    if (order === "hand") return this.chosen(this.ready.map(thread => thread.number));
    return this.ready[this.random && eachAccess ? this.random.below(this.ready.length) : 0];
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
    this.turn = { who: thread, accesses: [] };
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
