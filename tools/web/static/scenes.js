// The scenes of the recordings: each makes, of the rows of a CSV file, what recording.js plays: a list of
// { of: what it is a run of, by the names of the choices, steps, height, legend, draw(canvas, step, part), says(step), seconds(step) }:
// `part`, from 0 to 1, is how far the clock is on its way to the next step. Nothing is computed that the run has not written.
"use strict";

// Okabe and Ito's colours, which differ for all eyes; a rank has the one of its number.
const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];
const [blue, orange, green, pink, sky, vermilion, yellow, grey] = colours;
const unique = values => [...new Set(values)];
const listed = words => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join(""));
const sum = values => values.reduce((total, value) => total + value, 0);
const count = value => value.toLocaleString("en");
const round = value => (Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString());
const rankColours = ranks => Array.from({ length: ranks }, (_, rank) => [colours[rank % 8], `rank ${rank}`]);

const bookScenes = {
  // Who holds what: a grid of ranks and chunks after each step; a rank that is in a sum has its stripe, in a place of its own. In a
  // ring, a chunk slides from its neighbour. Below, what has passed the ports, in and out, on one scale for all algorithms.
  holdings(rows) {
    const ranks = 1 + Math.max(...rows.map(row => row.rank)), kib = bytes => `${count(Math.round(bytes / 1024))} KiB`;
    const plays = unique(rows.map(row => row.algorithm)).map(algorithm => {
      const mine = rows.filter(row => row.algorithm === algorithm), steps = unique(mine.map(row => row.step)).map(step => mine.filter(row => row.step === step));
      const passed = (step, rank) => ["received", "sent"].map(way => sum(steps.slice(0, step + 1).flat().filter(row => row.rank === rank).map(row => row[way])));
      return { algorithm, steps, passed };
    });
    const most = Math.max(...plays.flatMap(({ steps, passed }) => steps[0].flatMap(({ rank }) => passed(steps.length - 1, rank))));
    return plays.map(({ algorithm, steps, passed }) => ({
      of: { algorithm, ranks }, steps: steps.length, height: 56 + 46 * ranks + 34, legend: rankColours(ranks),
      draw(canvas, step, part) {
        const left = 68, wide = (canvas.width - left) / ranks, box = wide - 10, low = 58 + 46 * ranks;
        const stripes = (row, x, y) => rankColours(ranks).forEach(([colour], member) => {
          if (row.ranks >> member & 1) canvas.box(x + box * member / ranks, y, box / ranks, 38, colour);
        });
        const frame = (row, x, y) => canvas.box(x + 2, y + 2, box - 4, 34, "none", `${kib(row.received)} came in`, { stroke: "currentColor", "stroke-width": 4 });
        canvas.text(0, 16, `step ${step} of ${steps.length - 1}`, { "font-weight": 700 });
        for (const row of steps[step]) {
          const x = left + row.rank * wide, y = 50 + 46 * row.chunk;
          if (row.chunk === 0) canvas.text(x, 40, wide < 45 ? row.rank : `rank ${row.rank}`);
          if (row.rank === 0) canvas.text(0, y + 25, `chunk ${row.chunk}`);
          canvas.box(x, y, box, 38, "#8882");
          stripes(row, x, y);
          if (row.received && !part) frame(row, x, y);
          if (row.chunk === 0) passed(step, row.rank).forEach((bytes, way) => {
            const says = `rank ${row.rank}: ${kib(bytes)} ${way ? "out" : "in"}`;
            canvas.box(x, low + 16 * way, box, 11, "#8882", says);
            canvas.box(x, low + 16 * way, box * bytes / most, 11, "currentColor", says);
          });
        }
        ["in", "out"].forEach((way, i) => canvas.text(0, low + 10 + 16 * i, `port, ${way}`, { "font-size": 12 }));
        if (part && algorithm === "ring") for (const row of steps[step + 1].filter(({ received }) => received)) {
          const from = (row.rank + ranks - 1) % ranks, at = from + (row.rank - from) * Math.min(1, 2 * part), y = 50 + 46 * row.chunk;
          stripes(steps[step].find(({ rank, chunk }) => rank === from && chunk === row.chunk), left + at * wide, y);
          frame(row, left + at * wide, y);
        }
      },
      says(step) {
        if (step === 0) return "Every rank has only its own numbers.";
        const at = unique(steps[step].filter(row => row.received).map(row => row.rank)).map(rank => steps[step].filter(row => row.rank === rank && row.received));
        const what = at.map(came => `${came.length === ranks ? "the array" : came.length > 1 ? `${came.length} chunks` : `chunk ${came[0].chunk}`} at rank ${came[0].rank}`);
        const sums = unique(at.flat().map(row => rankColours(ranks).filter((_, member) => row.ranks >> member & 1).length));
        const port = rank => sum(passed(step, rank)), busiest = steps[0].map(({ rank }) => rank).reduce((a, b) => (port(b) > port(a) ? b : a));
        const [into, out] = passed(step, busiest).map(kib);
        return `In ${what.length > 1 ? "come" : "comes"} ${listed(what)}: now ${sums[0] === ranks ? "the whole sum" : `sums of ${listed(sums)} ranks`}. This step took ` +
          `${count(steps[step][0].step_us)} us, all so far ${count(sum(steps.slice(0, step + 1).map(([row]) => row.step_us)))}. Through the busiest port, rank ${busiest}'s, ${into} have come in and ${out} have gone out.`;
      },
    }));
  },

  // The paths of two biases of all replicas.
  replicas(rows) {
    const apart = (a, b) => Math.hypot(a.bias_0 - b.bias_0, a.bias_1 - b.bias_1), columns = ["bias_0", "bias_1"], left = 62, tall = 230, top = 24;
    const [[low0, high0], [low1, high1]] = columns.map(column => rows.map(row => row[column])).map(values => [Math.min(...values), Math.max(...values)]);
    return unique(rows.map(row => row.gradients)).map(gradients => {
      const mine = rows.filter(row => row.gradients === gradients), paths = unique(mine.map(row => row.rank)).map(rank => mine.filter(row => row.rank === rank));
      return {
        of: { gradients }, steps: paths[0].length, height: 280, legend: rankColours(paths.length),
        draw(canvas, step) {
          const x = row => left + 8 + (canvas.width - left - 24) * (row.bias_0 - low0) / (high0 - low0 || 1);
          const y = row => top + tall - 8 - (tall - 16) * (row.bias_1 - low1) / (high1 - low1 || 1);
          canvas.text(0, 14, `step ${paths[0][step].step}`, { "font-weight": 700 });
          canvas.add("path", { d: `M${left} ${top}V${top + tall}H${canvas.width}`, fill: "none", stroke: "currentColor" });
          for (const [text, at, height] of [["bias 1", 0, top + tall / 2], ["bias 0", canvas.width / 2, top + tall + 16]]) canvas.text(at, height, text);
          for (const [value, at] of [[low0, left + 24], [high0, canvas.width]]) canvas.text(at, top + tall + 16, round(value), { "font-size": 12, "text-anchor": "end" });
          for (const [value, at] of [[high1, top + 12], [low1, top + tall]]) canvas.text(left - 6, at, round(value), { "font-size": 12, "text-anchor": "end" });
          paths.forEach((path, rank) => {
            const points = path.slice(0, step + 1).map(row => `${x(row)},${y(row)}`);
            canvas.add("polyline", { points: points.join(" "), fill: "none", stroke: colours[rank % 8], "stroke-width": 2 });
            canvas.add("circle", { cx: x(path[step]), cy: y(path[step]), r: Math.max(3, 9 - 2 * rank), fill: colours[rank % 8] });
          });
        },
        says(step) {
          const at = paths.map(path => path[step]);
          return `After step ${at[0].step}, these two biases of any two replicas are at most ${round(Math.max(...at.flatMap(a => at.map(b => apart(a, b)))))} apart.`;
        },
      };
    });
  },

  // What each rank computes and sends in a step, in milliseconds: the kinds of step below one another.
  timeline(rows) {
    const by = Object.keys(rows[0]).find(column => titles[column]);
    const doing = (rows, now) => listed(unique(rows.filter(row => row.begin <= now && row.end > now).map(row => (row.name.startsWith("bucket") ? "all-reduce" : row.name.replace(/ .*/, ""))))) || "done";
    return [timelines("ms", doing, Object.keys(titles[by]).map(kind => [titles[by][kind], rows.filter(row => row[by] === kind).map(row => ({
      lane: `rank ${row.rank}${row.stream === "communication" ? " sends" : ""}`, name: String(row.name), begin: row.begin_ms, end: row.end_ms,
    }))]))];
  },

  // Who is receiving the file, and when the last one has it, for each way to send it.
  ways(rows) {
    const doing = (rows, now) => `${rows.filter(row => row.end <= now).length} of ${rows.length} readers`;
    return [timelines("s", doing, unique(rows.map(row => row.algorithm)).map(way => [way, rows.filter(row => row.algorithm === way).map(row => (
      { lane: `reader ${row.reader}`, name: "receives the file", begin: row.begin_seconds, end: row.end_seconds }))]))];
  },
};

// What a timeline is of, by the column that has several values.
const titles = { overlap: { off: "without overlap", on: "with overlap" }, part: { hangs: "it hangs", cured: "with find_unused_parameters" } };

// ---- What scenes share

// The colour of what a rank does, by how its name begins.
const kinds = [
  ["forward", blue], ["backward", green], ["bucket", vermilion], ["waiting", grey], ["elsewhere", yellow], ["optimizer", orange],
  ["used map", pink], ["receives", blue],
];
const kindOf = name => kinds.find(([begin]) => name.startsWith(begin)) || [name, grey];

// How much of a time is shown: what takes almost all of it (a rank that waits until a time-out) is cut, and said to be.
function shownOf(rows) {
  const ends = rows.map(row => row.end).sort((a, b) => a - b), early = ends.filter(end => end < ends.at(-1) / 10);
  return early.length > rows.length / 2 ? 1.6 * early.at(-1) : ends.at(-1);
}

// The largest of 1, 2, 5, 10 ... that makes at least four parts of a time.
function tickOf(time) {
  const ten = 10 ** Math.floor(Math.log10(time / 4));
  return ten * [5, 2, 1].find(times => times * ten <= time / 4);
}

// Timelines below one another on one scale, with an axis: of each, its title and its rows { lane, name, begin, end }, of which
// doing(rows, now) says in words how it stands. They play in eight seconds, as the clock went; a step ends where something begins or ends.
function timelines(unit, doing, groups) {
  const shown = Math.max(...groups.map(([, rows]) => shownOf(rows))), left = 100, all = groups.flatMap(([, rows]) => rows), early = all.filter(row => row.begin <= shown);
  const instants = unique([0, ...all.flatMap(row => [row.begin, row.end]).filter(time => time < shown)]).sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(instants.length / 120)), times = [...instants.filter((_, i) => i % every === 0), Math.min(shown, Math.max(...all.map(row => row.end)))];
  const lanesOf = rows => unique(rows.map(row => row.lane)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const tall = groups.some(([, rows]) => lanesOf(rows).length > 5) ? 16 : 24, middle = tall / 2 + 2;
  const height = 40 + groups.reduce((total, [, rows]) => total + 26 + tall * lanesOf(rows).length, 0);
  const endOf = ([title, rows]) => {
    const last = Math.max(...rows.map(row => row.end)), late = rows.filter(row => row.end > shown);
    return `${title}: ${late.length ? `until ${round(last)} ${unit}, far to the right, ${listed(unique(late.map(row => `${row.lane} ${row.name.replace(/, .*/, "")}`)).slice(0, 3))}` : `done after ${round(last)} ${unit}`}`;
  };
  return {
    of: {}, steps: times.length, height, seconds: step => 8 * (times[step + 1] - times[step]) / times.at(-1),
    legend: kinds.filter(([begin]) => early.some(row => row.name.startsWith(begin))).map(([begin, colour]) => [colour, { bucket: "a bucket's all-reduce", receives: "receives the file" }[begin] || begin]),
    draw(canvas, step, part) {
      const now = times[step] + (part ? part * (times[step + 1] - times[step]) : 0), at = time => left + (canvas.width - left - 8) * Math.min(time, shown) / shown;
      let y = 0;
      for (const [title, rows] of groups) {
        canvas.text(0, y + 18, title, { "font-weight": 700 });
        y += 26;
        for (const lane of lanesOf(rows)) {
          canvas.text(0, y + middle, lane, { "font-size": 12 });
          canvas.box(left, y, canvas.width - left - 8, tall - 4, "#8881");
          for (const row of rows.filter(row => row.lane === lane && row.begin <= shown)) {
            const says = `${lane}: ${row.name}, from ${round(row.begin)} to ${round(row.end)} ${unit}`, number = row.name.match(/^bucket (\d+)/), wide = at(row.end) - at(row.begin);
            canvas.box(at(row.begin), y, Math.max(1, wide - 0.5), tall - 4, kindOf(row.name)[1], says, { opacity: 0.22 });
            if (row.begin <= now) canvas.box(at(row.begin), y, Math.max(1, at(Math.min(now, row.end)) - at(row.begin) - 0.5), tall - 4, kindOf(row.name)[1], says);
            if (number && wide > 14) canvas.text(at(row.begin) + wide / 2, y + middle, number[1], { "text-anchor": "middle", "font-size": 11, style: `pointer-events: none${row.begin <= now ? "; fill: #000" : ""}` });
          }
          y += tall;
        }
      }
      canvas.add("path", { d: `M${left} ${y + 4}H${canvas.width - 8}`, stroke: "currentColor" });
      for (let tick = 0; tick <= shown; tick += tickOf(shown)) {
        canvas.add("path", { d: `M${at(tick)} ${y + 4}v5`, stroke: "currentColor" });
        canvas.text(at(tick), y + 24, round(tick), { "text-anchor": "middle", "font-size": 12 });
      }
      canvas.text(0, y + 24, unit, { "font-size": 12 });
      canvas.add("line", { x1: at(now), x2: at(now), y1: 20, y2: y + 4, stroke: "currentColor", "stroke-width": 2 });
    },
    says(step, part = 0) {
      const now = times[step] + (part ? part * (times[step + 1] - times[step]) : 0);
      if (step === times.length - 1) return `${groups.map(endOf).join(". ").replace(/(^|\. )\w/g, letter => letter.toUpperCase())}.`;
      return `At ${part ? Math.round(now) : round(now)} ${unit}: ${groups.map(([title, rows]) => `${title}, ${doing(rows, now)}`).join("; ")}.`;
    },
  };
}
