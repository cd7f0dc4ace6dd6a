// The scenes of the recordings: each makes, of the rows of a CSV file, what recording.js plays: a list of
// { label, steps, height, legend, draw(canvas, step), says(step) }. Nothing is computed that the run has not written.
"use strict";

// Okabe and Ito's colours, which differ for all eyes; a rank has the one of its number.
const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];
const [blue, orange, green, pink, sky, vermilion, yellow, grey] = colours;
const unique = values => [...new Set(values)];
const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const listed = words => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join(""));
const round = value => (Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString());
const rankColours = ranks => Array.from({ length: ranks }, (_, rank) => [colours[rank % 8], `rank ${rank}`]);

const bookScenes = {
  // Who holds what: a grid of ranks and chunks after each step; a stripe for each rank that is in a sum.
  ring(rows) {
    const ranks = 1 + Math.max(...rows.map(row => row.rank)), steps = 1 + Math.max(...rows.map(row => row.step));
    const cells = new Map(rows.map(row => [`${row.step} ${row.rank} ${row.chunk}`, row]));
    const count = bits => bits.toString(2).replaceAll("0", "").length;
    const carried = (step, rank) => rows.filter(row => row.rank === rank && row.step <= step && row.received).length;
    return [{
      label: several(ranks, "rank"), steps, height: 62 + 46 * ranks + 50, legend: rankColours(ranks),
      draw(canvas, step) {
        const left = 68, wide = (canvas.width - left) / ranks, box = wide - 10;
        canvas.text(0, 16, `step ${step} of ${steps - 1}${step ? (step < ranks ? ": add" : ": copy") : ""}`, { "font-weight": 700 });
        for (let rank = 0; rank < ranks; rank++) {
          const x = left + rank * wide;
          canvas.text(x, 40, wide < 45 ? rank : `rank ${rank}`);
          for (let chunk = 0; chunk < ranks; chunk++) {
            const { ranks: holds, received } = cells.get(`${step} ${rank} ${chunk}`), y = 50 + 46 * chunk;
            if (rank === 0) canvas.text(0, y + 25, `chunk ${chunk}`);
            canvas.box(x, y, box, 38, "#8882");
            for (let member = 0, place = 0; member < ranks; member++)
              if (holds >> member & 1) canvas.box(x + box * place++ / ranks, y, box / ranks, 38, colours[member % 8]);
            if (received) canvas.box(x + 2, y + 2, box - 4, 34, "none", "", { stroke: "currentColor", "stroke-width": 4 });
          }
          const y = 60 + 46 * ranks, most = 2 * (ranks - 1);
          canvas.box(x, y, box * carried(step, rank) / most, 12, "currentColor");
          canvas.box(x, y, box, 12, "none", "", { stroke: "currentColor" });
          canvas.text(x, y + 30, `${wide < 50 ? "" : "in: "}${carried(step, rank)}/${ranks}`, { "font-size": 12 });
        }
        canvas.text(0, 70 + 46 * ranks, "port");
      },
      says(step) {
        if (step === 0) return "Every rank has only its own numbers.";
        const came = rows.filter(row => row.step === step && row.received);
        const sums = unique(came.map(row => count(row.ranks)));
        return `In come ${listed(came.map(row => `chunk ${row.chunk} at rank ${row.rank}`))}: ` +
          (sums[0] === ranks ? "each is a whole sum." : `each is now the sum of ${several(sums[0], "rank")}.`) +
          ` Through each port ${several(carried(step, 0), "chunk")} of ${ranks} have come.`;
      },
    }];
  },

  // Who has the file, and who is receiving it, each time that somebody's is complete.
  readers(rows) {
    const longest = Math.max(...rows.map(row => row.end_seconds));
    return unique(rows.map(row => row.algorithm)).map(label => {
      const mine = rows.filter(row => row.algorithm === label);
      const times = [0, ...unique(mine.map(row => row.end_seconds)).sort((a, b) => a - b)];
      return {
        label, steps: times.length, height: 40 + 30 * mine.length, legend: [[green, "has the file"], [sky, "is receiving it"]],
        draw(canvas, step) {
          const left = 72, now = times[step], at = time => left + (canvas.width - left - 4) * time / longest;
          canvas.text(0, 14, `after ${round(now)} s`, { "font-weight": 700 });
          mine.forEach((row, i) => {
            const y = 28 + 30 * i, done = row.end_seconds <= now;
            canvas.text(0, y + 15, `reader ${row.reader}`);
            canvas.box(left, y, canvas.width - left - 4, 20, "#8882");
            if (row.begin_seconds < now)
              canvas.box(at(row.begin_seconds), y, at(Math.min(now, row.end_seconds)) - at(row.begin_seconds), 20, done ? green : sky,
                `reader ${row.reader}: from ${round(row.begin_seconds)} to ${round(row.end_seconds)} s`);
          });
          canvas.add("line", { x1: at(now), x2: at(now), y1: 22, y2: 28 + 30 * mine.length, stroke: "currentColor", "stroke-width": 2 });
        },
        says(step) {
          const have = mine.filter(row => row.end_seconds <= times[step]).length;
          const getting = mine.filter(row => row.begin_seconds <= times[step] && row.end_seconds > times[step]).length;
          return step === 0 ? `Only reader 0 has the file; ${several(mine.length, "friend")} want it.` :
            `After ${round(times[step])} s ${have} of ${mine.length} have it` + (getting ? `, and ${getting} are receiving it.` : ".");
        },
      };
    });
  },

  // The lanes of a block in each step of a sum: those that add have a colour, and idle ones are grey.
  warps(rows) {
    const lanes = 32;
    return unique(rows.map(row => row.order)).map(label => {
      const mine = rows.filter(row => row.order === label);
      const steps = 1 + Math.max(...mine.map(row => row.step)), warps = Math.ceil((1 + Math.max(...rows.map(row => row.thread))) / lanes);
      const active = step => new Set(mine.filter(row => row.step === step).map(row => row.thread));
      return {
        label, steps, height: 30 + 44 * warps, legend: [[orange, "adds"], ["#8884", "idle in a busy warp"], ["#8882", "idle with its warp"]],
        draw(canvas, step) {
          const left = 58, wide = (canvas.width - left) / lanes, adds = active(step);
          canvas.text(0, 14, `step ${step} of ${steps - 1}`, { "font-weight": 700 });
          for (let warp = 0; warp < warps; warp++) {
            const busy = [...adds].some(thread => Math.floor(thread / lanes) === warp);
            canvas.text(0, 50 + 44 * warp, `warp ${warp}`);
            if (busy) canvas.box(left - 3, 27 + 44 * warp, canvas.width - left + 3, 36, "none", "", { stroke: "currentColor" });
            for (let lane = 0; lane < lanes; lane++) {
              const thread = warp * lanes + lane;
              canvas.box(left + lane * wide, 30 + 44 * warp, wide - 1.5, 30, adds.has(thread) ? orange : busy ? "#8884" : "#8882", `thread ${thread}`);
            }
          }
        },
        says(step) {
          if (step === 0) return "Each thread has one number; nothing is added yet.";
          const adds = active(step), busy = unique([...adds].map(thread => Math.floor(thread / lanes))).length;
          return `${several(adds.size, "thread")} of ${warps * lanes} ${adds.size === 1 ? "adds" : "add"}, in ${several(busy, "warp")}: ` +
            `${busy * lanes - adds.size} lanes are taken along and do nothing.`;
        },
      };
    });
  },

  // A descent: the path of two weights, and its loss.
  descent(rows) {
    return [descentOf("one rate", [{ label: "w", colour: blue, rows }], row => `after step ${row.step}`)];
  },
  descents(rows) {
    const ways = unique(rows.map(row => row.way));
    return ways.map((label, i) => descentOf(label, [{ label, colour: colours[i], rows: rows.filter(row => row.way === label) }],
      row => `after ${several(row.houses, "house")}, ${several(row.step, "step")}`, rows));
  },

  // How replicas drift that do not talk, beside the losses.
  drift(rows) {
    const lines = [["drift_alone", vermilion, "alone: how far the replicas are apart"], ["drift_averaged", blue, "averaged: how far they are apart"]];
    const losses = [["alone", vermilion], ["averaged", blue]];
    return [{
      label: "drift", steps: rows.length, height: 330, legend: lines.map(([, colour, text]) => [colour, text]),
      draw(canvas, step) {
        canvas.text(0, 14, `step ${rows[step].step}`, { "font-weight": 700 });
        plot(canvas, 24, 140, "distance", rows, lines, step);
        plot(canvas, 180, 140, "loss", rows, losses, step);
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
    const [[low0, high0], [low1, high1]] = ["bias_0", "bias_1"].map(column => rows.map(row => row[column])).map(all => [Math.min(...all), Math.max(...all)]);
    return unique(rows.map(row => row.gradients)).map(label => {
      const ranks = unique(rows.map(row => row.rank)), paths = ranks.map(rank => rows.filter(row => row.gradients === label && row.rank === rank));
      const steps = paths[0].map(row => row.step), apart = (a, b) => Math.hypot(a.bias_0 - b.bias_0, a.bias_1 - b.bias_1);
      return {
        label, steps: steps.length, height: 320, legend: rankColours(ranks.length),
        draw(canvas, step) {
          const x = row => 62 + (canvas.width - 76) * (row.bias_0 - low0) / (high0 - low0), y = row => 290 - 256 * (row.bias_1 - low1) / (high1 - low1);
          canvas.text(0, 14, `step ${steps[step]}`, { "font-weight": 700 });
          canvas.add("path", { d: `M54 24V298H${canvas.width}`, fill: "none", stroke: "currentColor" });
          for (const [text, left, top] of [["bias 1", 0, 160], ["bias 0", canvas.width - 44, 316]]) canvas.text(left, top, text);
          paths.forEach((path, rank) => {
            canvas.add("polyline", { points: path.slice(0, step + 1).map(row => `${x(row)},${y(row)}`).join(" "), fill: "none", stroke: colours[rank % 8], "stroke-width": 2 });
            canvas.add("circle", { cx: x(path[step]), cy: y(path[step]), r: Math.max(3, 9 - 2 * rank), fill: colours[rank % 8] });
          });
        },
        says: step => `After step ${steps[step]}, these two biases of any two replicas are at most ${round(Math.max(...paths.flatMap(a => paths.map(b => apart(a[step], b[step])))))} apart.`,
      };
    });
  },

  // What each rank computes and sends, in milliseconds: one play for each schedule that was run.
  timeline(rows) {
    const by = ["overlap", "part", "schedule"].find(column => column in rows[0]);
    return unique(rows.map(row => row[by])).map(value => timelineOf(by === "overlap" ? `overlap ${value}` : String(value),
      rows.filter(row => row[by] === value).map(row => ({
        lane: `rank ${row.rank}${row.stream === "communication" ? " sends" : ""}`,
        name: String(row.name), begin: row.begin_ms, end: row.end_ms,
      })), "ms"));
  },

  // What a step takes on more and more ranks: measured, predicted where there is a model of the link, and ideal.
  scaling(rows) {
    const bars = [["step_s", blue, "measured"], ["predicted_s", orange, "predicted by the simulator"], ["ideal_s", grey, "ideal"]];
    return unique(rows.map(row => row.scaling)).map(scaling => {
      const mine = rows.filter(row => row.scaling === scaling), known = row => bars.filter(([column]) => row[column] !== "");
      const longest = Math.max(...mine.flatMap(row => known(row).map(([column]) => row[column])));
      const ms = seconds => `${round(1000 * seconds)} ms`;
      return {
        label: `${scaling} scaling`, steps: mine.length, height: 24 + 72 * mine.length, legend: bars.map(([, colour, text]) => [colour, text]),
        draw(canvas, step) {
          const left = 66, most = canvas.width - left - 70;
          canvas.text(0, 14, "time of a step", { "font-weight": 700 });
          mine.slice(0, step + 1).forEach((row, i) => {
            const y = 26 + 72 * i;
            canvas.text(0, y + 22, several(row.ranks, "rank"));
            canvas.text(0, y + 40, several(row.nodes, "node"), { "font-size": 12 });
            known(row).forEach(([column, colour, text], place) => {
              canvas.box(left, y + 20 * place, most * row[column] / longest, 17, colour, `${text}: ${ms(row[column])}`);
              canvas.text(left + most * row[column] / longest + 6, y + 20 * place + 13, ms(row[column]), { "font-size": 12 });
            });
          });
        },
        says(step) {
          const { ranks, nodes, step_s, predicted_s, ideal_s } = mine[step];
          const error = 100 * (predicted_s - step_s) / step_s;
          return `${several(ranks, "rank")} on ${several(nodes, "node")}: a step takes ${ms(step_s)}, where ${ms(ideal_s)} would be ideal. ` +
            (predicted_s === "" ? "" : `Predicted were ${ms(predicted_s)}, an error of ${error.toFixed(1)} %.`);
        },
      };
    });
  },

  // What becomes of ranks that are killed, in seconds.
  stories(rows) {
    return unique(rows.map(row => row.story)).map(story => timelineOf(story,
      rows.filter(row => row.story === story && row.what !== "loss").map(row => ({
        lane: `rank ${row.rank}`, name: String(row.what), begin: row.begin_s, end: row.end_s,
      })), "s"));
  },
};

// ---- What scenes share

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

function descentOf(label, paths, when, all = paths[0].rows) {
  const rows = paths[0].rows, every = Math.max(1, Math.ceil(rows.length / 200));
  const kept = rows.filter((row, i) => i % every === 0 || i === rows.length - 1);
  const range = column => [Math.min(...all.map(row => row[column])), Math.max(...all.map(row => row[column]))];
  const [low1, high1] = range("w1"), [low2, high2] = range("w2");
  return {
    label, steps: kept.length, height: 420,
    draw(canvas, step) {
      const left = 62, tall = 230, top = 24;
      const x = value => left + 8 + (canvas.width - left - 24) * (value - low1) / (high1 - low1 || 1);
      const y = value => top + tall - 8 - (tall - 16) * (value - low2) / (high2 - low2 || 1);
      canvas.text(0, 14, when(kept[step]), { "font-weight": 700 });
      canvas.add("path", { d: `M${left} ${top}V${top + tall}H${canvas.width}`, fill: "none", stroke: "currentColor" });
      canvas.text(0, top + tall / 2, "w2");
      canvas.text(canvas.width - 22, top + tall + 16, "w1");
      for (const [value, at] of [[low1, x(low1)], [high1, x(high1) - 40]]) canvas.text(at, top + tall + 16, round(value), { "font-size": 12 });
      canvas.text(left - 6, top + 12, round(high2), { "text-anchor": "end", "font-size": 12 });
      canvas.text(left - 6, top + tall, round(low2), { "text-anchor": "end", "font-size": 12 });
      const points = kept.slice(0, step + 1).map(row => `${x(row.w1)},${y(row.w2)}`);
      canvas.add("polyline", { points: points.join(" "), fill: "none", stroke: blue, "stroke-width": 2 });
      canvas.add("circle", { cx: x(kept[step].w1), cy: y(kept[step].w2), r: 5, fill: vermilion });
      plot(canvas, 300, 105, "loss", kept, [["loss", blue]], step);
    },
    says(step) {
      const { w1, w2, b, loss } = kept[step];
      return `${when(kept[step]).replace(/^a/, "A")}: w1 is ${round(w1)}, w2 ${round(w2)}, b ${round(b)}, and the loss ${round(loss)}.`;
    },
  };
}

// The colour of what a rank does, by how its name begins.
const kinds = [
  ["forward", blue], ["backward", green], ["bucket", vermilion], ["waiting", grey], ["elsewhere", yellow], ["optimizer", orange],
  ["used map", pink], ["trains", blue], ["redoes", pink], ["starts", yellow], ["loads", sky], ["is down", grey],
  ["checkpoint", green], ["kill", "#000"], ["SIG", "#000"],
];
const kindOf = name => kinds.find(([begin]) => name.startsWith(begin)) || [name, grey];

// Lanes of intervals. A step goes on to where the next one begins; what takes almost all of the time (a rank that waits until a
// time-out) is cut, and said to be.
function timelineOf(label, rows, unit) {
  const lanes = unique(rows.map(row => row.lane)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const ends = rows.map(row => row.end).sort((a, b) => a - b), longest = ends.at(-1);
  const early = ends.filter(end => end < longest / 10);
  const shown = early.length > rows.length / 2 ? 1.6 * early.at(-1) : longest;
  const instants = unique(rows.map(row => row.begin).filter(begin => begin < shown)).sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(instants.length / 120));
  const times = [...instants.filter((_, i) => i % every === 0), shown];
  const running = now => rows.filter(row => row.begin <= now && row.end > now && row.end > row.begin);
  const span = row => `${row.lane}: ${row.name}, from ${round(row.begin)} to ${round(row.end)} ${unit}`;
  return {
    label, steps: times.length, height: 34 + 26 * lanes.length,
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
        for (const row of rows.filter(row => row.lane === lane)) {
          if (row.begin > shown) continue;
          const [begin, colour] = kindOf(row.name), gone = row.begin <= now;
          if (begin === "kill" || begin === "SIG" || begin === "checkpoint") continue;
          canvas.box(at(row.begin), y, Math.max(1, at(row.end) - at(row.begin) - 0.5), 20, colour, span(row), { opacity: gone ? 1 : 0.22 });
          const number = row.name.match(/^bucket (\d+)/);
          if (number && at(row.end) - at(row.begin) > 14)
            canvas.text((at(row.begin) + at(row.end)) / 2, y + 14, number[1], { "text-anchor": "middle", "font-size": 11, style: "fill:#fff; pointer-events:none" });
        }
        for (const row of rows.filter(row => row.lane === lane && /^(kill|SIG|checkpoint)/.test(row.name))) {
          const dot = canvas.add("circle", { cx: at(row.begin), cy: y + 10, r: 5, fill: row.name === "checkpoint" ? green : "currentColor",
            stroke: "var(--color-background-primary)", opacity: row.begin <= now ? 1 : 0.25 });
          dot.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), { textContent: span(row) }));
        }
      });
      canvas.add("line", { x1: at(now), x2: at(now), y1: 20, y2: 26 + 26 * lanes.length, stroke: "currentColor", "stroke-width": 2 });
    },
    says(step) {
      const now = times[step], groups = new Map();
      if (step === times.length - 1) {
        const late = rows.filter(row => row.end > shown);
        return late.length ? `${listed(unique(late.map(row => `${row.lane}: ${row.name}`)).slice(0, 5))} until ${round(longest)} ${unit}, far to the right of this picture.` :
          `All is done after ${round(longest)} ${unit}.`;
      }
      for (const row of running(now)) {
        const what = row.name.replace(/, .*/, "");
        groups.set(what, [...(groups.get(what) || []), row.lane.replace("rank ", "").replace(" sends", "")]);
      }
      const signs = rows.filter(row => /^(kill|SIG)/.test(row.name) && Math.abs(row.begin - now) < shown / 1000).map(row => row.name);
      const doing = [...groups].map(([what, lanes]) => `${what} (${lanes.length > 1 ? "ranks" : "rank"} ${unique(lanes).join(", ")})`);
      return `At ${round(now)} ${unit}: ${[...signs, ...doing].join("; ") || "nothing"}.`;
    },
  };
}
