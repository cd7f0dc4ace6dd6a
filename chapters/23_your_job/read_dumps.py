#!/usr/bin/env python3
"""Reads the flight-recorder dumps of all ranks of a job that hung, and says who kept the others waiting: `./book read FILE...`

    rank 0's dump  [.. #40 all_reduce done] [#41 all_reduce waits]           for each group of ranks, collective after collective:
    rank 1's dump  [.. #40 all_reduce done] [#41 all_reduce waits]           who has called it, and have all called the same?
    rank 2's dump  [.. #40 all_reduce done]                   <-- never came

A dump is a pickle, as PyTorch writes it (TORCH_FR_DUMP_TEMP_FILE with the rank at its end, or torch._C._distributed_c10d._dump_fr_trace()),
or JSON. A pickle may hold code. So no pickle is loaded here: its instructions are read one by one, and only those that make numbers, text,
lists and dictionaries are followed. Needs Python alone.
"""
import collections
import json
import pathlib
import pickletools
import re
import sys

import read_traces

MOST_BYTES = 1 << 29


class Refused(Exception):
    """Why a dump is not read, as the end of a sentence."""


# ---- A pickle, without its code ------------------------------------------------------------------

MARK = object()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
          "UNICODE", "BINSTRING", "SHORT_BINSTRING", "STRING", "BINBYTES", "SHORT_BINBYTES"}


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
            raise Refused(f"has the instruction {name}, which plain values do not need: it could run code")
    raise Refused("does not end")


def as_a(kind, value):
    if not isinstance(value, kind):
        raise Refused(f"puts something into a {type(value).__name__}")
    return value


# ---- A dump --------------------------------------------------------------------------------------


class Call:
    """One entry: a collective, or a message, that a rank has called."""

    def __init__(self, entry, where):
        entry = as_a(dict, entry)
        group = entry.get("process_group") or ("", "")
        if not isinstance(group, (list, tuple)) or not all(isinstance(part, str) for part in group) or not group:
            raise Refused(f"names no group of ranks in its entry {where}")
        self.group, self.is_default = group[0], group[-1] == "default_pg"
        self.is_message = entry.get("is_p2p") is True
        self.number = entry.get("p2p_seq_id" if self.is_message else "collective_seq_id")
        if not isinstance(self.number, int):
            raise Refused(f"gives no number to its entry {where}")
        name = entry.get("profiling_name")
        if not isinstance(name, str):
            raise Refused(f"has no name for its entry {where}")
        self.name = name.split(":", 1)[-1]
        self.shape = sizes(entry.get("input_sizes"))
        self.type = ", ".join(kind for kind in as_a(list, entry.get("input_dtypes") or []) if isinstance(kind, str))
        state = entry.get("state")
        self.is_done = entry.get("retired") is True or state == "completed" or bool(entry.get("time_discovered_completed_ns"))
        self.state = "done" if self.is_done else "running" if state == "started" else "waiting"
        self.place = place_of(entry.get("frames"))

    def what(self):
        return f"{self.name} of {self.shape} {self.type}".strip()

    def alike(self):
        """Returns what must be equal on all ranks. Those that deal out or collect unequal parts may have other sizes."""
        free = any(word in self.name for word in ("gather", "scatter", "all_to_all", "alltoall"))
        return self.name, self.type, "" if free else self.shape


def sizes(value):
    rows = [row for row in as_a(list, value or []) if isinstance(row, (list, tuple)) and len(row) < 16]
    return " and ".join("x".join(str(n) for n in row if isinstance(n, int)) or "1" for row in rows[:3]) + (" ..." if len(rows) > 3 else "")


def place_of(frames):
    """Returns the innermost line that is not PyTorch's own, as "file:line in function"."""
    for frame in frames if isinstance(frames, list) else []:
        if not isinstance(frame, dict):
            continue
        file = str(frame.get("filename", ""))
        if "/torch/" not in file and not file.endswith(".cpp"):
            return f"{pathlib.PurePath(file).name}:{frame.get('line')} in {frame.get('name')}"
    return ""


class Dump:
    """What one rank has called, by group: calls[group] is a dictionary from numbers to calls."""

    def __init__(self, content):
        try:
            plain = json.loads(content) if content.lstrip()[:1] == b"{" else read_pickle(content)
        except Refused:
            raise
        except RecursionError:
            raise Refused("is nested too deeply") from None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, UnicodeDecodeError):
            raise Refused("is damaged, or neither a pickle nor JSON") from None
        if not isinstance(plain, dict) or not isinstance(plain.get("entries", []), list):
            raise Refused("is not a flight recorder's")
        if "entries" not in plain and "pg_config" not in plain:
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
                ranks = [int(number) for number in re.findall(r"\d+", str(config.get("ranks", ""))[:1 << 20])]
                self.members[str(config.get("name") or key)] = ranks
        self.unnamed = self.members.pop("", [])  # Gloo lists whichever group was made last, without a name

    def waits(self):
        """Returns the collectives and messages that are not done."""
        return [call for calls in self.calls.values() for call in calls.values() if not call.is_done] + [
            call for call in self.messages if not call.is_done]


def load(paths):
    """Returns the dumps by rank, which is the last number of a file's name."""
    dumps = {}
    for path in paths:
        name = pathlib.Path(path).name
        number = re.findall(r"\d+", name)
        if not number:
            sys.exit(f"{path}: a dump's name ends with its rank, as in nccl_trace_rank_3.")
        rank = int(number[-1])
        if rank in dumps:
            sys.exit(f"{path}: rank {rank} has another dump already.")
        try:
            if pathlib.Path(path).stat().st_size > MOST_BYTES:
                raise Refused("is larger than 512 MiB")
            dumps[rank] = Dump(pathlib.Path(path).read_bytes())
        except OSError as error:
            sys.exit(f"{path} cannot be read: {error.strerror}.")
        except Refused as why:
            sys.exit(f"{path} {why}.")
    return dumps


# ---- Who kept whom waiting -----------------------------------------------------------------------


def ranks_in_words(ranks):
    ranks = sorted(ranks)
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))


def members_of(group, dumps):
    """Returns the ranks of a group: those that a dump lists, or those that have called something in it."""
    for dump in dumps.values():
        if dump.members.get(group):
            return dump.members[group]
    if any(call.is_default for dump in dumps.values() for call in dump.calls.get(group, {}).values()):
        return sorted(dumps)
    callers = sorted(rank for rank, dump in dumps.items() if dump.calls.get(group))
    return next((dump.unnamed for dump in dumps.values() if set(callers) <= set(dump.unnamed)), callers)


def first_difference(group, dumps):
    """Returns the first collective of the group that not all have called alike, as (number, {rank: call}, ranks that never came)."""
    members = [rank for rank in members_of(group, dumps) if rank in dumps]
    numbers = sorted({number for rank in members for number in dumps[rank].calls.get(group, {})})
    for number in numbers:
        calls = {rank: dumps[rank].calls[group][number] for rank in members if number in dumps[rank].calls.get(group, {})}
        # A recorder keeps the last calls only: one that is older than its first entry has been made.
        absent = [rank for rank in members if rank not in calls and not any(known > number for known in dumps[rank].calls.get(group, {}))]
        if len({call.alike() for call in calls.values()}) > 1 or absent:
            return number, calls, absent
    return None


def where_it_stood(rank, dump):
    waiting = dump.waits()
    if waiting:
        call = waiting[0]
        return f"rank {rank} waits in #{call.number} {call.what()} of group {call.group or 'default'}" + (f", called at {call.place}" if call.place else "")
    if dump.last is None:
        return f"rank {rank} has called nothing at all"
    return (f"rank {rank} waits in no collective; its last one was #{dump.last.number} {dump.last.what()}, which is done"
            + (f", called at {dump.last.place}" if dump.last.place else "") + ": it computes, waits for something else, or has ended")


def explain_collectives(group, dumps):
    """Returns lines about the group's first collective that differs, if there is one."""
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
        lines.append(f"    {ranks_in_words(ranks)}: {call.what()}, {call.state}" + (f", called at {call.place}" if call.place else ""))
    if absent:
        lines.append(f"    {ranks_in_words(absent)}: never came")
        lines += [f"        {where_it_stood(rank, dumps[rank])}" for rank in sorted(absent)]
    if len(kinds) > 1:
        fewest = min(kinds.values(), key=lambda ranks: (len(ranks), -min(ranks)))
        suspects = fewest if 2 * len(fewest) < len(calls) else sorted(calls)
        lines.append(f"Look at {ranks_in_words(suspects)} first: " + ("it calls something else than the others." if len(suspects) < len(calls)
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
            if other is None or other not in dumps or any(not each.is_done for each in dumps[other].messages if str(rank) in re.findall(r"\d+", each.name)):
                continue
            lines += [f"Rank {rank} waits in the message #{call.number} {call.what()}" + (f", called at {call.place}" if call.place else "")
                      + f", and rank {other} never came.", f"    {where_it_stood(other, dumps[other])}", f"Look at rank {other} first."]
            break
    return lines


def report(dumps):
    """Returns what the dumps say, as lines."""
    lines = [f"{len(dumps)} dumps, of {ranks_in_words(dumps)}."]
    lines += [where_it_stood(rank, dumps[rank])[0].upper() + where_it_stood(rank, dumps[rank])[1:] + "." for rank in sorted(dumps)] + [""]
    everybody = {rank for dump in dumps.values() for ranks in dump.members.values() for rank in ranks}
    missing = sorted((everybody | set(range(max(dumps)))) - set(dumps))
    groups = sorted({group for dump in dumps.values() for group in dump.calls})
    found = [explain_collectives(group, dumps) for group in groups]
    # Of groups that all differ, the one counts whose absent rank waits in no other group.
    found = sorted((lines for lines in found if lines), key=lambda lines: "waits in no collective" not in "\n".join(lines))
    waiting = any(dump.waits() for dump in dumps.values())
    if missing:
        lines += [f"Look at {ranks_in_words(missing)} first: there is no dump. Has it ended, or was it killed?"] + (found[0][:-1] if found else [])
    elif found:
        lines += found[0]
    else:
        messages = explain_messages(dumps)
        lines += messages or (["All have called the same, and not all of it is done: a rank was stopped, the link is slow, or the dumps were written too early."]
                              if waiting else ["All have called the same, and all of it is done: nobody waits in a collective."])
    return lines


def main():
    if len(sys.argv) < 2:
        sys.exit("read takes the flight-recorder dumps of all ranks, or their profiler's traces: one file each.")
    if sys.argv[1] == "--what-if" or read_traces.is_trace(sys.argv[1]):
        return read_traces.main()
    print("\n".join(report(load(sys.argv[1:]))))


if __name__ == "__main__":
    main()
