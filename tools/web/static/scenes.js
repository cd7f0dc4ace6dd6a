// The scenes of the recordings: each makes, of the rows of a CSV file, what recording.js plays: a list of
// { of: what it is a run of, by the names of the choices, steps, height, legend, draw(canvas, step), says(step) }. Nothing is computed that the run has not written.
"use strict";

// Okabe and Ito's colours, which differ for all eyes; a rank has the one of its number.
const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];
const [blue, orange, green, pink, sky, vermilion, yellow, grey] = colours;
const unique = values => [...new Set(values)];
const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const listed = words => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join(""));
const sum = values => values.reduce((total, value) => total + value, 0);
const count = value => value.toLocaleString("en");
const round = value => (Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString());
const rankColours = ranks => Array.from({ length: ranks }, (_, rank) => [colours[rank % 8], `rank ${rank}`]);

const bookScenes = {
  // Who holds what: a grid of ranks and chunks after each step; a stripe for each rank that is in a sum. Below, what has passed
  // the ports, in and out, on one scale for all algorithms of as many ranks.
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
      draw(canvas, step) {
        const left = 68, wide = (canvas.width - left) / ranks, box = wide - 10, low = 58 + 46 * ranks;
        canvas.text(0, 16, `step ${step} of ${steps.length - 1}`, { "font-weight": 700 });
        for (const row of steps[step]) {
          const x = left + row.rank * wide, y = 50 + 46 * row.chunk, members = rankColours(ranks).filter((_, member) => row.ranks >> member & 1);
          if (row.chunk === 0) canvas.text(x, 40, wide < 45 ? row.rank : `rank ${row.rank}`);
          if (row.rank === 0) canvas.text(0, y + 25, `chunk ${row.chunk}`);
          canvas.box(x, y, box, 38, "#8882");
          members.forEach(([colour], place) => canvas.box(x + box * place / ranks, y, box / ranks, 38, colour));
          if (row.received) canvas.box(x + 2, y + 2, box - 4, 34, "none", `${kib(row.received)} came in`, { stroke: "currentColor", "stroke-width": 4 });
          if (row.chunk === 0) passed(step, row.rank).forEach((bytes, way) => {
            const says = `rank ${row.rank}: ${kib(bytes)} ${way ? "out" : "in"}`;
            canvas.box(x, low + 16 * way, box, 11, "#8882", says);
            canvas.box(x, low + 16 * way, box * bytes / most, 11, "currentColor", says);
          });
        }
        ["in", "out"].forEach((way, i) => canvas.text(0, low + 10 + 16 * i, `port, ${way}`, { "font-size": 12 }));
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

  // How replicas drift that do not talk, beside the losses.
  drift(rows) {
    const lines = [["drift_alone", vermilion, "alone: how far the replicas are apart"], ["drift_averaged", blue, "averaged: how far they are apart"]];
    return [{
      of: {}, steps: rows.length, height: 330, legend: lines.map(([, colour, text]) => [colour, text]),
      draw(canvas, step) {
        canvas.text(0, 14, `step ${rows[step].step}`, { "font-weight": 700 });
        plot(canvas, 24, 140, "distance", rows, lines, step);
        plot(canvas, 180, 140, "loss", rows, [["alone", vermilion], ["averaged", blue]], step);
      },
      says(step) {
        const { alone, averaged, drift_alone, drift_averaged } = rows[step];
        return `Alone, the replicas are ${round(drift_alone)} apart, with a loss of ${round(alone)}. With averaged gradients they are ` +
          `${round(drift_averaged)} apart, with a loss of ${round(averaged)}.`;
      },
    }];
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

  // What each rank computes and sends, in milliseconds: one play for each kind of step that was run.
  timeline(rows) {
    const names = { overlap: "overlap", part: "part", schedule: "schedule", link_mb_s: "link in MB/s", cap_mib: "cap in MiB (0: a bucket each)" };
    const by = Object.keys(names).filter(column => column in rows[0]), kind = row => JSON.stringify(by.map(column => row[column]));
    return timelinesOf("ms", unique(rows.map(kind)).map(key => {
      const mine = rows.filter(row => kind(row) === key);
      return [Object.fromEntries(by.map(column => [names[column], mine[0][column]])), mine.map(row => ({
        lane: `rank ${row.rank}${row.stream === "communication" ? " sends" : ""}`,
        name: String(row.name), begin: row.begin_ms, end: row.end_ms,
      }))];
    }));
  },

  // What a step takes on more and more ranks: measured, predicted where there is a model of the link, and ideal.
  scaling(rows) {
    const bars = [["step_s", blue, "measured"], ["predicted_s", orange, "predicted by the simulator"], ["ideal_s", grey, "ideal"]];
    const ms = seconds => `${round(1000 * seconds)} ms`;
    return unique(rows.map(row => row.scaling)).map(scaling => barsOf({ scaling: `${scaling} scaling` }, "time of a step", rows.filter(row => row.scaling === scaling).map(row => ({
      name: several(row.ranks, "rank"), below: several(row.nodes, "node"),
      bars: bars.filter(([column]) => row[column] !== "").map(([column, colour, text]) => ({ parts: [[colour, row[column], text]], text: ms(row[column]) })),
      says: `${several(row.ranks, "rank")} on ${several(row.nodes, "node")}: a step takes ${ms(row.step_s)}, where ${ms(row.ideal_s)} would be ideal. ` +
        (row.predicted_s === "" ? "" : `Predicted were ${ms(row.predicted_s)}, an error of ${(100 * (row.predicted_s - row.step_s) / row.step_s).toFixed(1)} %.`),
    })), bars.map(([, colour, text]) => [colour, text])));
  },

  // What a rank keeps at each stage, by kind.
  memory(rows) {
    const kinds = ["parameters", "gathered", "gradients", "buckets", "moments", "activations", "communicator"].map((kind, i) => [kind, colours[i]]);
    const mib = bytes => `${round(bytes / 2 ** 20)} MiB`, all = row => sum(kinds.map(([kind]) => row[kind])), most = Math.max(...rows.map(all));
    return unique(rows.map(row => row.ranks)).map(ranks => barsOf({ ranks }, "memory of each rank", rows.filter(row => row.ranks === ranks).map(row => ({
      name: row.stage ? `stage ${row.stage}` : "DDP",
      bars: [{ parts: kinds.map(([kind, colour]) => [colour, row[kind], `${kind}: ${mib(row[kind])}`]), text: mib(all(row)) }],
      says: `${row.stage ? `At stage ${row.stage}` : "With DDP"} each of ${several(ranks, "rank")} keeps ${mib(all(row))}: ` +
        `${listed(kinds.filter(([kind]) => row[kind]).map(([kind]) => `${kind} ${mib(row[kind])}`))}.`,
    })), kinds.map(([kind, colour]) => [colour, kind]), most));
  },

  // What leaves a node, and how long that takes, for arrays of each size.
  nodes(rows) {
    const ways = [["one ring", orange], ["two levels", blue]], bytes = value => (value < 2 ** 20 ? `${round(value / 2 ** 10)} KiB` : `${round(value / 2 ** 20)} MiB`);
    const sizes = unique(rows.map(row => row.bytes)).map(size => ways.map((_, i) => rows.find(row => row.bytes === size && row.levels === i + 1)));
    const leaving = row => row.bytes_leaving_node || row.expected_bytes_leaving_node, shown = { "what leaves a node": [leaving, bytes], "what it takes": [row => row.seconds, seconds => `${round(1000 * seconds)} ms`] };
    return Object.entries(shown).map(([what, [value, text]]) => barsOf({ shown: what }, `${what}, and beside one ring`, sizes.map(pair => ({
      name: bytes(pair[0].bytes),
      bars: pair.map((row, i) => ({ parts: [[ways[i][1], value(row) / value(pair[0]), ways[i][0]]], text: text(value(row)) })),
      says: `Of ${bytes(pair[0].bytes)}, ${listed(pair.map((row, i) => `${ways[i][0]} lets ${bytes(leaving(row))} leave a node, in ${round(1000 * row.seconds)} ms`))}.`,
    })), ways.map(([way, colour]) => [colour, way])));
  },

  // What becomes of ranks that are killed, in seconds.
  stories(rows) {
    return timelinesOf("s", unique(rows.map(row => row.story)).map(story => [{ story },
      rows.filter(row => row.story === story && row.what !== "loss").map(row => ({
        lane: `rank ${row.rank}`, name: String(row.what), begin: row.begin_s, end: row.end_s,
      }))]));
  },
};

// ---- What scenes share

// Bars: a group of them for each step, which stay. { name, below, bars: [{ parts: [[colour, value, words]], text }], says }
function barsOf(of, title, groups, legend, most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ parts }) => sum(parts.map(([, value]) => value)))))) {
  const tall = 20 * Math.max(2, groups[0].bars.length) + 12;
  return {
    of, steps: groups.length, height: 24 + tall * groups.length, legend, says: step => groups[step].says,
    draw(canvas, step) {
      const left = 66, wide = (canvas.width - left - 70) / most;
      canvas.text(0, 14, title, { "font-weight": 700 });
      groups.slice(0, step + 1).forEach(({ name, below = "", bars }, i) => {
        canvas.text(0, 48 + tall * i, name);
        canvas.text(0, 66 + tall * i, below, { "font-size": 12 });
        bars.forEach(({ parts, text }, place) => {
          const y = 34 + tall * i + 20 * place;
          const end = parts.reduce((x, [colour, value, words]) => (canvas.box(x, y, wide * value, 17, colour, words), x + wide * value), left);
          canvas.text(end + 6, y + 13, text, { "font-size": 12 });
        });
      });
    },
  };
}

// A plot of some columns over the steps so far, scaled to the whole run.
function plot(canvas, top, height, name, rows, lines, step) {
  const most = Math.max(...lines.flatMap(([column]) => rows.map(row => row[column]))), left = 62;
  const x = i => left + (canvas.width - left - 8) * i / Math.max(1, rows.length - 1), y = value => top + height - height * value / most;
  canvas.add("path", { d: `M${left} ${top}V${top + height}H${canvas.width}`, fill: "none", stroke: "currentColor" });
  canvas.text(0, top + height / 2, name);
  canvas.text(left - 6, top + 10, round(most), { "text-anchor": "end", "font-size": 12 });
  for (const [column, colour] of lines) {
    const points = rows.slice(0, step + 1).map((row, i) => `${x(i)},${y(row[column])}`);
    canvas.add("polyline", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": 2.5 });
    canvas.add("circle", { cx: x(step), cy: y(rows[step][column]), r: 4, fill: colour });
  }
}

// The colour of what a rank does, by how its name begins.
const kinds = [
  ["forward", blue], ["backward", green], ["bucket", vermilion], ["waiting", grey], ["elsewhere", yellow], ["optimizer", orange],
  ["used map", pink], ["trains", blue], ["redoes", pink], ["starts", yellow], ["loads", sky], ["is down", grey],
  ["checkpoint", green], ["kill", "#000"], ["SIG", "#000"],
];
const kindOf = name => kinds.find(([begin]) => name.startsWith(begin)) || [name, grey];

// Timelines on one scale: of each, what it is of and its rows.
function timelinesOf(unit, plays) {
  const scale = Math.max(...plays.map(([, rows]) => shownOf(rows)));
  return plays.map(([of, rows]) => timelineOf(of, rows, unit, scale));
}

// How much of a time is shown: what takes almost all of it (a rank that waits until a time-out) is cut, and said to be.
function shownOf(rows) {
  const ends = rows.map(row => row.end).sort((a, b) => a - b), early = ends.filter(end => end < ends.at(-1) / 10);
  return early.length > rows.length / 2 ? 1.6 * early.at(-1) : ends.at(-1);
}

// Lanes of intervals. A step goes on to where the next one begins.
function timelineOf(of, rows, unit, shown) {
  const lanes = unique(rows.map(row => row.lane)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const longest = Math.max(...rows.map(row => row.end));
  const instants = unique(rows.map(row => row.begin).filter(begin => begin < shown)).sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(instants.length / 120));
  const times = [...instants.filter((_, i) => i % every === 0), Math.min(shown, longest)];
  const running = now => rows.filter(row => row.begin <= now && row.end > now && row.end > row.begin);
  const span = row => `${row.lane}: ${row.name}, from ${round(row.begin)} to ${round(row.end)} ${unit}`;
  return {
    of, steps: times.length, height: 34 + 26 * lanes.length,
    legend: kinds.filter(([begin]) => rows.some(row => row.name.startsWith(begin))).map(([begin, colour]) =>
      [colour === "#000" ? "currentColor" : colour, unique(rows.map(row => row.name).filter(name => name.startsWith(begin)).map(
        name => (begin === "bucket" ? "a bucket's all-reduce" : begin === "kill" ? "kill -9" : begin === "SIG" ? name.split(" ")[0] : begin === "backward" ? begin : name)))[0]]),
    draw(canvas, step) {
      const left = 96, now = times[step], at = time => left + (canvas.width - left - 4) * Math.min(time, shown) / shown;
      canvas.text(0, 14, `${round(now)} ${unit}`, { "font-weight": 700 });
      lanes.forEach((lane, i) => {
        const y = 26 + 26 * i;
        canvas.text(0, y + 15, lane, { "font-size": 12 });
        canvas.box(left, y, canvas.width - left - 4, 20, "#8881");
        const mine = rows.filter(row => row.lane === lane && row.begin <= shown), isInstant = row => /^(kill|SIG|checkpoint)/.test(row.name);
        for (const row of mine.filter(row => !isInstant(row))) {
          const gone = row.begin <= now, wide = at(row.end) - at(row.begin), number = row.name.match(/^bucket (\d+)/);
          canvas.box(at(row.begin), y, Math.max(1, wide - 0.5), 20, kindOf(row.name)[1], span(row), { opacity: gone ? 1 : 0.22 });
          if (number && wide > 14)
            canvas.text(at(row.begin) + wide / 2, y + 14, number[1], { "text-anchor": "middle", "font-size": 11, style: `pointer-events: none${gone ? "; fill: #000" : ""}` });
        }
        for (const row of mine.filter(isInstant))
          canvas.add("circle", { cx: at(row.begin), cy: y + 10, r: 5, fill: row.name === "checkpoint" ? green : "currentColor",
            stroke: "var(--color-background-primary)", opacity: row.begin <= now ? 1 : 0.25 }, "", span(row));
      });
      canvas.add("line", { x1: at(now), x2: at(now), y1: 20, y2: 26 + 26 * lanes.length, stroke: "currentColor", "stroke-width": 2 });
    },
    says(step) {
      const now = times[step], groups = new Map(), late = unique(rows.filter(row => row.end > shown).map(row => `${row.lane}: ${row.name}`));
      if (step === times.length - 1)
        return late.length ? `${listed(late.slice(0, 5))} until ${round(longest)} ${unit}, far to the right of this picture.` : `All is done after ${round(longest)} ${unit}.`;
      for (const row of running(now)) {
        const what = row.name.replace(/, .*/, "");
        groups.set(what, [...(groups.get(what) || []), row.lane.replace("rank ", "").replace(" sends", "")]);
      }
      const signs = rows.filter(row => /^(kill|SIG)/.test(row.name) && Math.abs(row.begin - now) < shown / 1000).map(row => row.name);
      const doing = [...groups].map(([what, lanes]) => `${what} (${lanes.length > 1 ? "ranks " : "rank "}${unique(lanes).join(", ")})`);
      return `At ${round(now)} ${unit}: ${[...signs, ...doing].join("; ") || "nothing"}.`;
    },
  };
}
