"""Rows of a run as a trace that says nothing of the schema and nothing of chance. Pure.

What is by nature by chance, and what a loss of the worker adds by design, is taken out:

- times, fences and claims are not read at all, and durations are left out of payloads;
- ids are numbered in the order in which the trace names them, as `#3`; addresses on this machine lose their port;
- steps are named by kind and number, as `tool 2`, wherever another step or row refers to them by its number;
- within a superstep, what branches did side by side stands in the order of their paths, and segments of role calls are
  numbered in the order of the calls that begin them. Which of them another one is said to follow is left out there;
- the hash of a decision that names an id is no more than that;
- of a call's key, only superstep and path stay, without the hash of what was asked;
- that a run was resumed after its worker crashed is no step of the trace; how many calls were read back then is
  counted beside it (`read_back`);
- of a long text its beginning stays and its hash, of token ids and log-probabilities how many there are and their hash.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import SequenceMatcher
from hashlib import blake2b
from itertools import groupby
from typing import Any, cast

Row = Mapping[str, Any]
Json = list[Any]
Entry = dict[str, Any]
Trace = dict[str, Any]
"""`runs`, the submitted one first, then those that it started; `effects` of tools; what the tenant was `charged`."""

UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

PORT = re.compile(r"(http://127\.0\.0\.1):\d+")

SEQS = {"action", "observation", "output_seq", "of", "question"}
"""Fields of payloads that hold the numbers of other steps."""

DURATIONS = {"ms", "seconds"}

MAX_TEXT_CHARS = 120
"""Characters of a long text that stay."""

LONG = 200

DIGEST = "#"
"""In a path, before the hash of what was asked."""


@dataclass
class Left:
    """What one run left: rows by section, and the stored parts of its prompts by hash."""

    rows: Mapping[str, Sequence[Row]]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


def trace_of(tree: Sequence[Left], effects: Sequence[Sequence[str]], charged: Sequence[Any]) -> Trace:
    """`effects`: what tools really did. `charged`: what the tenant's day now holds more as used, and as reserved."""
    whole = {
        "runs": [_run(left) for left in tree],
        "effects": [list(effect) for effect in effects],
        "charged": list(charged),
    }
    return _shortened(json.loads(_without_chance(json.dumps(whole, sort_keys=True, default=_text))))


def read_back(tree: Sequence[Left]) -> list[int]:
    """How many calls each claim after a crash had on record."""
    return [s["payload"]["read_back"] for left in tree for s in left.rows["steps"] if _after_a_loss(s)]


def _after_a_loss(step: Row) -> bool:
    return step["kind"] == "resumed" and "read_back" in step["payload"]


def _text(value: Any) -> str:
    """Money without zeros at its end, of which there are as many as its column has, or none."""
    return format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)


def _without_chance(text: str) -> str:
    ids: dict[str, str] = {}
    text = UUID.sub(lambda m: ids.setdefault(m[0], f"#{len(ids) + 1}"), text)
    return PORT.sub(r"\1", text)


def _run(left: Left) -> Entry:
    steps = in_order(left.rows["steps"])
    names, calls = _named(steps), _RoleCalls(left, steps)
    return {
        "run": dict(left.rows["run"][0]),
        "steps": [_step(step, names) for step in steps],
        "role_calls": [calls.entry(row, names) for row in calls.rows],
        "segments": sorted((calls.segment(row) for row in left.rows["segments"]), key=lambda s: s["idx"]),
        "reports": [{**row, "seq": names.get(row["seq"])} for row in left.rows["reports"]],
        "input_requests": [_input_request(row, names) for row in _by_step(left.rows["input_requests"], steps)],
        **{
            name: [_located(row) for row in left.rows[name]]
            for name in ("intents", "citations", "checkpoints", "children")
        },
    }


# Steps ----------------------------------------------------------------------------------------------------------------


def in_order(steps: Sequence[Row]) -> list[Row]:
    """As they were appended, but for branches that ran side by side, which stand in the order of their paths."""
    stored = [step for step in steps if not _after_a_loss(step)]
    ordered = list[Row]()
    for superstep, beside in groupby(stored, lambda step: step["superstep"]):
        results = list(beside)
        ordered += results if superstep is None else sorted(results, key=lambda s: (_bare(s["path"]), s["seq"]))
    return ordered


def _named(steps: Iterable[Row]) -> dict[int, str]:
    """Each step's name by its number."""
    counts = Counter[str]()
    names: dict[int, str] = {}
    for step in steps:
        counts[step["kind"]] += 1
        names[step["seq"]] = f"{step['kind']} {counts[step['kind']]}"
    return names


def _step(step: Row, names: Mapping[int, str]) -> Entry:
    entry = {name: value for name, value in step.items() if name not in ("seq", "ordinal")}
    return _located({**entry, "name": names[step["seq"]], "payload": _referring(step["payload"], names)})


def _referring(value: Any, names: Mapping[int, str]) -> Any:
    """The same with the names of the steps that it refers to."""
    match value:
        case list():
            return [_referring(one, names) for one in cast(Json, value)]
        case dict():
            return {k: _referred(k, v, names) for k, v in cast(Row, value).items() if k not in DURATIONS}
        case _:
            return value


def _referred(name: str, value: Any, names: Mapping[int, str]) -> Any:
    return names.get(value, value) if name in SEQS and type(value) is int else _referring(value, names)


def _located(row: Row) -> Entry:
    """A row whose path has no hash, without what is empty."""
    entry = {**row, "path": _bare(row["path"])} if row.get("path") is not None else dict(row)
    return {name: value for name, value in entry.items() if value not in (None, "", [], {})}


def _bare(path: str) -> str:
    return path.partition(DIGEST)[0]


# Role calls -----------------------------------------------------------------------------------------------------------


def _by_step(rows: Sequence[Row], steps: Sequence[Row]) -> list[Row]:
    """Rows behind steps, in the order of these."""
    positions = {step["seq"]: nth for nth, step in enumerate(steps)}
    return sorted(rows, key=lambda row: positions[row["seq"]])


class _RoleCalls:
    """The role calls of a run in the order of their steps, and their segments in the order of theirs."""

    def __init__(self, left: Left, steps: Sequence[Row]) -> None:
        self.rows, self._texts = _by_step(left.rows["role_calls"], steps), left.texts
        self._steps = {step["seq"]: step for step in steps}
        rows = [row for row in self.rows if row["segment_idx"] is not None]
        self._numbers = {segment: n for n, segment in enumerate(dict.fromkeys(row["segment_idx"] for row in rows))}
        self._began = {row["segment_idx"]: self._place(row) for row in reversed(rows)}
        paths = {(*self._place(row), _bare(self._steps[row["seq"]]["path"] or "")) for row in rows}
        self._beside = {position for position, count in Counter(path[:2] for path in paths).items() if count > 1}

    def _place(self, row: Row) -> tuple[int, str]:
        return self._steps[row["seq"]]["superstep"], row["role"]

    def entry(self, row: Row, names: Mapping[int, str]) -> Entry:
        payload = self._steps[row["seq"]]["payload"]
        entry = {name: _counted(value) for name, value in row.items() if name != "seq"}
        return _located({
            **entry,
            "name": names[row["seq"]],
            "segment_idx": self._numbers.get(row["segment_idx"], row["segment_idx"]),
            "prompt": [f"{role}: {' | '.join(self._texts[part] for part in parts)}" for role, parts in row["prompt"]],
            "failed_attempts": [_referring(one, {}) for one in row["failed_attempts"]],
            "action_key": "names an id" if UUID.search(json.dumps(payload)) else row["action_key"],
        })  # fmt: skip

    def segment(self, row: Row) -> Entry:
        """In branches of the same role side by side, chance decides which segment comes before which."""
        numbered = {name: self._numbers.get(row[name], row[name]) for name in ("idx", "parent_idx")}
        if self._beside & {self._began.get(row["idx"]), self._began.get(row["parent_idx"])}:
            numbered |= {"parent_idx": None, "parent_tokens": None}
        return {**row, **numbered}


def _counted(value: Any) -> Any:
    """Bytes as how many there are, and their hash."""
    return f"{len(value)} bytes, {_digest(value)}" if isinstance(value, bytes) else value


def _input_request(row: Row, names: Mapping[int, str]) -> Entry:
    seqs = {"seq": names.get(row["seq"]), "consumed_seq": names.get(row["consumed_seq"])}
    return _located({**row, **seqs})


# Whole traces ---------------------------------------------------------------------------------------------------------


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > LONG:
            return f"{value[:MAX_TEXT_CHARS]}… ({len(value)} characters, {_digest(value.encode())})"
        case list():
            return [_shortened(one) for one in cast(Json, value)]
        case dict():
            return {name: _shortened(one) for name, one in cast(Row, value).items()}
        case _:
            return value


def _digest(value: bytes) -> str:
    return blake2b(value, digest_size=6).hexdigest()


def differences(trace: Trace, plain: Trace) -> list[Entry]:
    """How a trace differs from another one, by section. Empty: they are the same."""
    ours, theirs = _sections(trace), _sections(plain)
    results = list[Entry]()
    for where in dict.fromkeys([*theirs, *ours]):
        if ours.get(where) != theirs.get(where):
            results.append({"where": where, **_compared(ours.get(where, []), theirs.get(where, []))})
    return results


def _sections(trace: Trace) -> dict[str, list[Any]]:
    sections: dict[str, list[Any]] = {"effects": trace["effects"], "charged": [trace["charged"]]}
    for nth, run in enumerate(trace["runs"]):
        for name, entries in run.items():
            sections[f"run {nth}, {name}"] = [entries] if isinstance(entries, dict) else entries
    return sections


def _compared(ours: Sequence[Any], theirs: Sequence[Any]) -> Entry:
    """Entries that `theirs` alone has, that `ours` alone has, and fields of those that both have in the same place."""
    mine, other = ([json.dumps(one, sort_keys=True) for one in of] for of in (ours, theirs))
    missing, more, changed = list[Any](), list[Any](), list[Entry]()
    for tag, i, j, k, m in SequenceMatcher(None, other, mine, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k and all(map(_same_entry, theirs[i:j], ours[k:m])):
            changed += map(_fields, theirs[i:j], ours[k:m])
        elif tag != "equal":
            missing += theirs[i:j]
            more += ours[k:m]
    parts = {"missing": missing, "more": more, "changed": changed}
    return {name: result for name, result in parts.items() if result}


def _same_entry(one: Any, other: Any) -> bool:
    both = [cast(Entry, entry) for entry in (one, other) if isinstance(entry, dict)]
    return len(both) == 2 and both[0].get("name") == both[1].get("name")


def _fields(recorded: Entry, now: Entry) -> Entry:
    """What differs in one entry: a field's value before and now."""
    names = sorted(recorded.keys() | now.keys())
    changed = {name: [recorded.get(name), now.get(name)] for name in names if recorded.get(name) != now.get(name)}
    return {"entry": recorded.get("name", ""), "fields": changed}
