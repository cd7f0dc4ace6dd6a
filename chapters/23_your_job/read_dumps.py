#!/usr/bin/env python3
"""Reads the flight recorder's dumps: who kept the others of a job waiting? `./book read FILE...`

    rank 0's dump  [.. #40 all_reduce done] [#41 all_reduce waits]     for each group of ranks, one
    rank 1's dump  [.. #40 all_reduce done] [#41 all_reduce waits]     collective after the other:
    rank 2's dump  [.. #40 all_reduce done]       <-- never came       have all called the same?

A dump is a pickle, as PyTorch writes it (TORCH_FR_DUMP_TEMP_FILE with the rank at its end, or
torch._C._distributed_c10d._dump_fr_trace()), or JSON. A pickle may hold code. So no pickle is
loaded here: its instructions are read one by one, and only those that make numbers, text, lists and
dictionaries are followed. Needs Python alone.
"""
import collections
import json
import pathlib
import pickletools
import re
import sys

import read_traces
from read_traces import Refused, printable


# ---- A pickle, without its code ------------------------------------------------------------------
MARK = object()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
VALUES = set("BININT BININT1 BININT2 LONG1 LONG4 INT LONG BINFLOAT FLOAT BINUNICODE BINUNICODE8 "
             "SHORT_BINUNICODE UNICODE BINSTRING SHORT_BINSTRING STRING BINBYTES "
             "SHORT_BINBYTES".split())


def read_pickle(content):
    """Returns what a pickle describes, if it is made of plain values."""
    stack, memo = [], {}

    def since_mark():
        at = len(stack) - 1
        while stack[at] is not MARK:
            at -= 1
        found = stack[at + 1:]
        del stack[at:]
        return found

    for instruction, argument, _ in pickletools.genops(content):
        name = instruction.name
        if name in ("PROTO", "FRAME"):
            continue
        if name == "STOP":
            return stack.pop()
        if name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name in VALUES:
            stack.append(argument)
        elif name == "MARK":
            stack.append(MARK)
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[argument])
        elif name in ("TUPLE", "LIST"):
            stack.append({"TUPLE": tuple, "LIST": list}[name](since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "APPEND":
            value = stack.pop()
            as_a(list, stack[-1]).append(value)
        elif name == "APPENDS":
            values = since_mark()
            as_a(list, stack[-1]).extend(values)
        elif name in ("SETITEM", "SETITEMS", "DICT"):
            values = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else since_mark()
            if name == "DICT":
                stack.append({})
            as_a(dict, stack[-1]).update(zip(values[::2], values[1::2]))
        else:
            raise Refused(f"has the instruction {name}, which plain values do not need: it could "
                          "run code")
    raise Refused("does not end")


def as_a(kind, value):
    if not isinstance(value, kind):
        raise Refused(f"puts something into a {type(value).__name__}")
    return value


# ---- A dump --------------------------------------------------------------------------------------
def words(value):
    """Returns a text or a number as it may be printed; of anything else nothing."""
    if isinstance(value, int):
        value = str(value) if abs(value) < 1 << 63 else "?"
    return printable(value[:200]) if isinstance(value, str) else ""


def ranks_of(value):
    """Returns the ranks of a group, which are a text or a list."""
    numbers = re.findall(r"\d+", value[:1 << 20]) if isinstance(value, str) else as_a(list, value)
    if not all(re.fullmatch(r"\d{1,6}", words(number)) for number in numbers):
        raise Refused("names a rank that is none")
    return [int(number) for number in numbers]


class Call:
    """One entry: a collective, or a message, that a rank has called."""

    def __init__(self, entry, where):
        entry = as_a(dict, entry)
        group = entry.get("process_group") or ("", "")
        if (not isinstance(group, (list, tuple)) or not group
                or not all(isinstance(part, str) for part in group)):
            raise Refused(f"names no group of ranks in its entry {where}")
        self.group, self.is_default = words(group[0]), group[-1] == "default_pg"
        self.is_message = entry.get("is_p2p") is True
        self.number = entry.get("p2p_seq_id" if self.is_message else "collective_seq_id")
        if not isinstance(self.number, int) or abs(self.number) >= 1 << 63:
            raise Refused(f"gives no number to its entry {where}")
        name = entry.get("profiling_name")
        if not isinstance(name, str):
            raise Refused(f"has no name for its entry {where}")
        self.name = words(name.split(":", 1)[-1])
        self.shape = sizes(entry.get("input_sizes"))
        types = as_a(list, entry.get("input_dtypes") or [])
        self.type = ", ".join(words(kind) for kind in types[:16])
        state = entry.get("state")
        self.is_done = (entry.get("retired") is True or state == "completed"
                        or bool(entry.get("time_discovered_completed_ns")))
        self.state = "done" if self.is_done else "running" if state == "started" else "waiting"
        place = place_of(entry.get("frames"))
        self.called_at = f", called at {place}" if place else ""

    def what(self):
        return f"{self.name} of {self.shape} {self.type}".strip()

    def alike(self):
        """Returns what all ranks must have alike. Of unequal parts, sizes may differ."""
        free = any(word in self.name for word in ("gather", "scatter", "all_to_all", "alltoall"))
        return self.name, self.type, "" if free else self.shape


def sizes(value):
    rows = [row for row in as_a(list, value or [])
            if isinstance(row, (list, tuple)) and len(row) < 16]
    each = ["x".join(words(n) for n in row if isinstance(n, int)) or "1" for row in rows[:3]]
    return " and ".join(each) + (" ..." if len(rows) > 3 else "")


def place_of(frames):
    """Returns the innermost line that is not PyTorch's own, as "file:line in function"."""
    for frame in frames if isinstance(frames, list) else []:
        if not isinstance(frame, dict):
            continue
        file, line, name = (words(frame.get(key)) for key in ("filename", "line", "name"))
        if "torch/" not in file and not file.endswith(".cpp"):
            return f"{pathlib.PurePath(file).name}:{line} in {name}"
    return ""


class Dump:
    """What one rank has called, by group: calls[group] is a dictionary from numbers to calls."""

    def __init__(self, content):
        try:
            is_json = content.lstrip()[:1] == b"{"
            plain = json.loads(content) if is_json else read_pickle(content)
        except Refused:
            raise
        except RecursionError:
            raise Refused("is nested too deeply") from None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError):
            raise Refused("is damaged, or neither a pickle nor JSON") from None
        if (not isinstance(plain, dict) or not isinstance(plain.get("entries", []), list)
                or "entries" not in plain and "pg_config" not in plain):
            raise Refused("is not a flight recorder's")
        self.calls, self.messages, self.last = collections.defaultdict(dict), [], None
        for where, entry in enumerate(plain.get("entries", [])):
            call = Call(entry, where)
            self.last = call
            if call.is_message:
                self.messages.append(call)
            else:
                self.calls[call.group][call.number] = call
        self.members = {}
        for key, config in as_a(dict, plain.get("pg_config") or {}).items():
            if isinstance(config, dict):
                self.members[words(config.get("name") or key)] = ranks_of(config.get("ranks", ""))
        self.unnamed = self.members.pop("", [])  # of Gloo: the group that was made last

    def waits(self):
        collectives = [call for calls in self.calls.values() for call in calls.values()]
        return [call for call in collectives + self.messages if not call.is_done]


def load(paths):
    """Returns the dumps by rank, which is the last number of a file's name."""
    dumps = {}
    for path in paths:
        number = re.findall(r"\d+", path.name)
        if not number or len(number[-1]) > 6:
            sys.exit(f"{path}: a dump's name ends with its rank, as in nccl_trace_rank_3.")
        rank = int(number[-1])
        if rank in dumps:
            sys.exit(f"{path}: rank {rank} has another dump already.")
        try:
            dumps[rank] = Dump(read_traces.content_of(path))
        except Refused as why:
            sys.exit(f"{path} {why}.")
    return dumps


# ---- Who kept whom waiting -----------------------------------------------------------------------
def ranks_in_words(ranks):
    ranks = sorted(ranks)
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def members_of(group, dumps):
    """Returns the ranks of a group: those that a dump lists, or that called something in it."""
    for dump in dumps.values():
        if dump.members.get(group):
            return dump.members[group]
    if any(call.is_default for dump in dumps.values()
           for call in dump.calls.get(group, {}).values()):
        return sorted(dumps)
    callers = sorted(rank for rank, dump in dumps.items() if dump.calls.get(group))
    return next((dump.unnamed for dump in dumps.values() if set(callers) <= set(dump.unnamed)),
                callers)


def first_difference(group, dumps):
    """Returns the group's first collective that not all have called alike, or None: as (number,
    {rank: call}, ranks that never came)."""
    known = {rank: dumps[rank].calls.get(group, {})
             for rank in members_of(group, dumps) if rank in dumps}
    for number in sorted({number for calls in known.values() for number in calls}):
        calls = {rank: known[rank][number] for rank in known if number in known[rank]}
        # A recorder keeps the last calls only: what is older than its first entry has been made.
        absent = [rank for rank in known if rank not in calls
                  and not any(later > number for later in known[rank])]
        if len({call.alike() for call in calls.values()}) > 1 or absent:
            return number, calls, absent
    return None


def where_it_stood(rank, dump):
    waiting = dump.waits()
    if waiting:
        call = waiting[0]
        return (f"rank {rank} waits in #{call.number} {call.what()} of group "
                f"{call.group or 'default'}{call.called_at}")
    if dump.last is None:
        return f"rank {rank} has called nothing at all"
    return (f"rank {rank} waits in no collective; its last one was #{dump.last.number} "
            f"{dump.last.what()}, which is done{dump.last.called_at}: it computes, waits for "
            "something else, or has ended")


def explain_collectives(group, dumps):
    found = first_difference(group, dumps)
    if found is None:
        return []
    number, calls, absent = found
    lines = [f"The first collective that differs is #{number} of group {group or 'default'}."]
    kinds = collections.defaultdict(list)
    for rank, call in calls.items():
        kinds[call.alike()].append(rank)
    for ranks in sorted(kinds.values(), key=lambda ranks: (-len(ranks), ranks)):
        call = calls[ranks[0]]
        lines.append(f"    {ranks_in_words(ranks)}: {call.what()}, {call.state}{call.called_at}")
    if absent:
        lines.append(f"    {ranks_in_words(absent)}: never came")
        lines += [f"        {where_it_stood(rank, dumps[rank])}" for rank in sorted(absent)]
    if len(kinds) > 1:
        fewest = min(kinds.values(), key=lambda ranks: (len(ranks), -min(ranks)))
        suspects = fewest if 2 * len(fewest) < len(calls) else sorted(calls)
        lines.append(f"Look at {ranks_in_words(suspects)} first: " + (
            "it calls something else than the others." if len(suspects) < len(calls)
            else "they call different things, and no majority says which is right."))
    else:
        lines.append(f"Look at {ranks_in_words(absent)} first: the others wait for it.")
    return lines


def explain_messages(dumps):
    """Returns lines about messages whose other side never came."""
    lines = []
    for rank, dump in sorted(dumps.items()):
        for call in dump.messages:
            ends = re.search(r"(\d+)\s*(->|<-)\s*(\d+)", call.name)
            if call.is_done or not ends:
                continue
            other = next((int(end) for end in (ends[1], ends[3]) if int(end) != rank), None)
            if other not in dumps or any(
                    not each.is_done for each in dumps[other].messages
                    if str(rank) in re.findall(r"\d+", each.name)):
                continue
            lines += [f"Rank {rank} waits in the message #{call.number} {call.what()}"
                      f"{call.called_at}, and rank {other} never came.",
                      f"    {where_it_stood(other, dumps[other])}", f"Look at rank {other} first."]
            break
    return lines


def report(dumps):
    lines = [f"{len(dumps)} dumps, of {ranks_in_words(dumps)}."]
    for rank in sorted(dumps):
        stood = where_it_stood(rank, dumps[rank])
        lines.append(stood[0].upper() + stood[1:] + ".")
    lines.append("")
    everybody = {rank for dump in dumps.values() for ranks in dump.members.values()
                 for rank in ranks}
    missing = sorted((everybody | set(range(max(dumps)))) - set(dumps))
    groups = sorted({group for dump in dumps.values() for group in dump.calls})
    found = [explain_collectives(group, dumps) for group in groups]
    # Of groups that all differ, the one counts whose absent rank waits in no other group.
    found = sorted((lines for lines in found if lines),
                   key=lambda lines: "waits in no collective" not in "\n".join(lines))
    if missing:
        lines.append(f"Look at {ranks_in_words(missing)} first: there is no dump. Has it ended, or "
                     "was it killed?")
        lines += found[0][:-1] if found else []
    elif found:
        lines += found[0]
    elif messages := explain_messages(dumps):
        lines += messages
    elif len(dumps) == 1:
        lines.append("One dump alone compares nothing: give `./book read` those of all ranks.")
    elif any(dump.waits() for dump in dumps.values()):
        lines.append("All have called the same, and not all of it is done: a rank was stopped, the "
                     "link is slow, or the dumps were written too early.")
    else:
        lines.append("All have called the same, and all of it is done: nobody waits in a "
                     "collective.")
    return lines


def main():
    if len(sys.argv) < 2:
        sys.exit("read takes the flight-recorder dumps of all ranks, or their profiler's traces: "
                 "one file each.")
    if sys.argv[1] == "--what-if":
        return read_traces.main()
    paths = read_traces.files_of(sys.argv[1:])
    return read_traces.main() if read_traces.is_trace(paths[0]) else report(load(paths))


if __name__ == "__main__":
    read_traces.say(main)
