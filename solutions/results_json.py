"""Writes a results.json as autograders read it (Gradescope's format), from rows on stdin: exercise,
task, verdict, points and words, each ended by a NUL. A task is a test; it has one point at most."""
import json
import sys

fields = sys.stdin.buffer.read().decode(errors="replace").split("\0")[:-1]
tests = []
for exercise, task, verdict, points, words in zip(*[iter(fields)] * 5, strict=True):
    tests.append({
        "name": f"{exercise}: {task}",
        "score": int(points),
        "max_score": 1,
        "status": "passed" if verdict == "passed" else "failed",
        "output": f"{verdict}: {words}" if words else verdict,
        "output_format": "text",
    })
json.dump({"tests": tests}, sys.stdout, indent=2)
print()
