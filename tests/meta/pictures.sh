#!/usr/bin/env bash
# The pictures say what the files do, and what has nothing to show is not drawn: plots/plot.py, with small files.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
PYTHONPATH=$root/chapters/23_your_job python3 "$root/plots/chapters/your_job.py" "$root"/chapters/23_your_job/traces/rank*.json.gz |
    cmp - "$root/plots/reference/your_job_traces.csv" || complain "your_job_traces.csv is not what its traces hold"
plots=
for python in python3 /usr/bin/python3; do
    [[ $plots ]] || ! "$python" -c "import matplotlib" 2>/dev/null || plots=$python
done
if [[ ! $plots ]]; then
    echo "SKIPPED: no matplotlib"
    finish
fi
cd "$scratch" || exit 1
draw() { expect "$1" "$2" "$plots" "$root/plots/plot.py" --from "$scratch" --svg "${@:3}"; }

# One epoch is no curve: nothing is drawn, and the picture of an earlier run goes.
curve() { printf '%s\n' epoch,loss,train_accuracy,test_accuracy "$@" >overlap.csv; }
curve 1,0.9,0.7,0.7 2,0.5,0.8,0.8
draw 0 "drawn: overlap.svg"
grep -q '<text .*sans-serif.*The loss falls' overlap.svg || complain "two epochs are not drawn, with text as text in any font"
curve 1,0.9,0.7,0.7
draw 0 "not drawn: overlap.csv: one epoch makes no curve"
[[ ! -e overlap.svg ]] || complain "the picture of an earlier run is left"
printf '%s\n' hook,bytes,step_error,sum_error,loss average,100,0,0,1 power_sgd,10,0.5,0.4,1 >bench_traffic.csv
draw 0 "drawn: bench_traffic.svg"  # what can be drawn is, all the same
# The orders of a sum, by the names that the run gives them.
printf '%s\n' order,sum,last_places forward,500241.25,46.6 '"kernel, '{atomics,interleaved,sequential,warps,accumulators}'",500239.75,-0.4' >reduce.csv
draw 0 "drawn: reduce.svg"
rm reduce.csv
curve
draw 1 "overlap.csv cannot be drawn: "

# What the drawings hold, asked of the figures themselves.
curve 1,0.9,0.7,0.7 2,0.5,0.8,0.8
printf '%s\n' way,ranks,step_ms,ratio "plain DDP,2,2.15,1" "static_graph,2,1.84,0.76" >bench_cures.csv
printf '%s\n' part,rank,stream,name,begin_ms,end_ms hangs,0,compute,forward,0,1 "hangs,0,communication,bucket 0,1,900" \
    cured,0,compute,forward,0,1 "cured,0,communication,bucket 0,1,2" "cured,0,communication,used map,2,3" >unused_parameters_timeline.csv
pixels=$(printf '%08d' 0)
for row in first mistake; do printf "$row,%d,boot,shirt,0.5,2,$pixels\n" {1..10}; done |
    cat <(echo row,picture,shows,says,probability,width,pixels) - >network_pictures.csv
output=$("$plots" - "$root/plots" <<'END' 2>&1
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import plot

def figure_of(name):
    figure = plot.DRAWINGS[name](plot.Measured(pathlib.Path(name + ".csv")))
    figure.canvas.draw()
    return figure

for panel in figure_of("overlap").axes:
    low, high = panel.get_xlim()
    ticks = [tick for tick in panel.get_xticks() if low <= tick <= high]
    assert ticks == [1, 2], f"epochs are {ticks}"
(panel,) = figure_of("bench_cures").axes
for bar, text in zip(panel.patches, panel.texts):
    assert text.get_text() == f"{bar.get_width():.2f}", f"a bar of {bar.get_width()} says {text.get_text()}"
assert [bar.get_width() for bar in panel.patches] == [1, 0.76], "the bars are not the ratios"
pictures = figure_of("network_pictures")
pictures.tight_layout()
pictures.canvas.draw()
above, below = pictures.axes[0], pictures.axes[10]
says = above.texts[0].get_window_extent().y0 - below.title.get_window_extent().y1
assert says > 0, f"what a picture of the first row is lies {-says:.0f} pixels on the title below it"
hangs, cured = figure_of("unused_parameters_timeline").axes
texts = [[text.get_text() for text in panel.texts] for panel in (hangs, cured)]
assert "map" in texts[1] and "map" not in texts[0], f"the map's all-reduce is not told: {texts}"
END
) || complain "the figures: $output"
finish
