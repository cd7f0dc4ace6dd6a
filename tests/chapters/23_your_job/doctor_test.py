#!/usr/bin/env python3
"""ddp_doctor.py: what it says of ranks that are well or never come, and of facts that are wrong."""
import contextlib
import copy
import io
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHAPTER = ROOT / "chapters" / "23_your_job"
sys.path.insert(0, str(CHAPTER))
import ddp_doctor  # noqa: E402
from support import ranks  # noqa: E402

failures = []


def complain(words):
    failures.append(words)
    print(f"FAILED: {words}", flush=True)


WELL = {"node": "a", "local rank": 0, "PyTorch": "2.15.0", "Python": "3.11.2", "script": "ab",
        "interface": "10.0.0.1", "threads": 1, "cores": [0, 1], "devices": 0, "device": "CPU"}


def job(**changes):
    """Returns two ranks' facts, and changes to rank 1's."""
    facts = [copy.deepcopy(WELL), dict(copy.deepcopy(WELL), **{"local rank": 1})]
    facts[1].update(changes)
    return facts


def says(words, facts, clocks=(0.0, 0.0)):
    found = ddp_doctor.judge(facts, list(clocks), "train.py")
    wrong = [sentence for well, sentence in found if not well]
    if len(wrong) != (1 if words else 0) or (words and words not in wrong[0]):
        complain(f"not '{words}' but {wrong} is said of {facts}")


def look_at_facts():
    says("", job())
    says("PyTorch is not the same on all ranks: 2.15.0 on rank 0; 2.14.0 on rank 1.",
         job(PyTorch="2.14.0"))
    says("script is not the same on all ranks: ab on rank 0; cd on rank 1.", job(script="cd"))
    says("set GLOO_SOCKET_IFNAME", job(node="b", interface="127.0.1.1"))
    says("2 ranks start 9 threads on 2 cores: set OMP_NUM_THREADS to 1.", job(threads=8))
    says("ranks would share a device", [dict(facts, devices=1) for facts in job()])
    says("ranks would share a device", [dict(WELL, devices=8)] * 2)
    says("", [dict(facts, devices=8) for facts in job()])
    says("rank 1 by -3.000 s", job(), (0.0, -3.0))
    alpha, beta = ddp_doctor.line_through([40e-6, 0, 0, 0, 0, 40e-6 + 16.8e-3], 2)
    if abs(alpha - 20e-6) > 1e-9 or abs(1 / beta - (16 << 20) / 16.8e-3) > 1e6:
        complain(f"alpha {alpha}, beta {beta}")


def visit(rank):
    said, status = io.StringIO(), None
    sys.argv = ["ddp_doctor.py", str(ROOT / "README.md")]
    with contextlib.redirect_stdout(said):
        try:
            ddp_doctor.main()
        except SystemExit as end:
            status = end.code
    return [status, said.getvalue()]


def look_at_a_visit():
    first, second = ranks.run(visit)
    wanted = ["All 2 ranks meet, on 1 node.", "PyTorch is the same on all ranks",
              "script is the same on all ranks", "The clocks agree",
              "all-reduce by gloo: alpha ", "  16,777,216"]
    lacking = [words for words in wanted if words not in first[1]]
    if lacking or first[0] != second[0] or second[1]:
        complain(f"of two ranks it does not say {lacking}: {first} {second}")
    if first[0] != int("WRONG" in first[1]):
        complain(f"the exit status is {first[0]}: {first[1]}")


def look_at_one_that_never_comes():
    def start(*arguments):
        return subprocess.run([sys.executable, "-B", str(CHAPTER / "ddp_doctor.py"), *arguments],
                              capture_output=True, text=True, timeout=120, env=environment)

    environment = dict(os.environ, RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT="0")
    begin = time.monotonic()
    result = start("--patience", "3")
    words = "the ranks do not meet at 127.0.0.1:0 within 3 s"
    if result.returncode != 2 or words not in result.stderr:
        complain(f"alone it says: {result.returncode} {result.stderr} after "
                 f"{time.monotonic() - begin:.0f} s")
    del environment["RANK"]
    result = start()
    if (result.returncode == 0 or "RANK is not set." not in result.stderr
            or len(result.stderr.splitlines()) != 1):
        complain(f"without its variables it says: {result.returncode} {result.stderr}")


def main():
    ranks.load()
    look_at_facts()
    look_at_a_visit()
    look_at_one_that_never_comes()
    print("all as expected" if not failures else f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
