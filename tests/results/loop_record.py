"""The stored results of the training loop, one record per seed and run, and the page that is written from them.

docs/results/closed-loop.json contains every record. The page shows the latest record of each seed that ran with the
current configuration. This module runs no loop and opens no database.
"""

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from textwrap import wrap
from typing import Any, NotRequired, TypedDict

from tests.results.intervals import paired
from tests.results.overlap import Overlap, experiments
from tests.results.pages import render_mean

FOLDER = Path(__file__).parents[2] / "docs/results"
RECORDS = FOLDER / "closed-loop.json"
PAGE = FOLDER / "closed-loop.md"
MARK = "<!-- figures: written by `make loop` -->"

MODES = ("sampled", "greedy")
WHEN = ("before", "after", "compared")
"""The starting policy, the trained planner, and imitation of the successful rollouts, which a loop may leave out."""

LookUps = dict[str, dict[str, tuple[float, float]]]
"""Greedy results by `WHEN` and look-ups: the share of correct answers and of rollouts that violated a rule."""


class Record(TypedDict):
    """The results of one run of the loop."""

    seed: int
    commit: str
    """Commit of the code that ran. `unknown` if it was not recorded."""
    date: str
    config: str
    """`config_hash` of the loop's configuration."""
    minutes: float
    tasks: int
    """Number of held-out tasks, the same ones for every seed."""
    success: dict[str, dict[str, float]]
    """Share of the held-out tasks that were answered correctly, by mode and `WHEN`."""
    violations: NotRequired[dict[str, dict[str, float]]]
    """Share of the rollouts that violated a rule of the graph, by mode and `WHEN`. Older records do not have it."""
    by_look_ups: LookUps
    rejection_reason: str
    """Why the planner did not pass the gate. Empty if it did."""


def config_hash(tables: Mapping[str, Any]) -> str:
    """Return the hash of a configuration, which does not depend on comments and layout."""
    return sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:12]


def record_of(result: Mapping[str, Any], by_look_ups: LookUps, config: str) -> Record:
    """Build the record from the output of `offing loop --json`."""
    success = {
        mode: {when: round(statistics.fmean(result[when][nth]["rewards"]), 4) for when in WHEN if result[when]}
        for nth, mode in enumerate(MODES)
    }
    return Record(
        seed=result["seed"], commit=result["commit"], date=result["date"], config=config,
        minutes=round(result["minutes"], 1), tasks=len(result["after"][0]["rewards"]), success=success,
        violations={
            mode: {when: round(result[when][nth]["violation_fraction"], 4) for when in WHEN if result[when]}
            for nth, mode in enumerate(MODES)
        },
        by_look_ups=by_look_ups, rejection_reason=result["rejection_reason"],
    )  # fmt: skip


def read(records: Path = RECORDS) -> list[Record]:
    return json.loads(records.read_text("utf-8")) if records.is_file() else []


def add(record: Record, records: Path = RECORDS) -> None:
    """Append a record. A record that is already in the file is not added again. Records are never changed."""
    stored, new = read(records), json.loads(json.dumps(record))
    if new not in stored:
        records.write_text(json.dumps([*stored, new], indent=1) + "\n", "utf-8")


def write_page(configs: Mapping[str, str], records: Path = RECORDS, page: Path = PAGE) -> list[str]:
    """Write the results below the mark of the page, and return them as lines. `configs`: see `render_metrics`."""
    lines = render_metrics(read(records), configs, experiments())
    head = page.read_text("utf-8").partition(MARK)[0]
    page.write_text(f"{head}{MARK}\n" + "\n".join(lines) + "\n", "utf-8")
    return lines


def render_metrics(records: Sequence[Record], configs: Mapping[str, str], overlaps: Mapping[str, Overlap]) -> list[str]:
    """Return the part of the page below its mark.

    `configs` is the hash of the configuration by experiment. The first one has no heading.
    """
    lines = list[str]()
    for name, config in configs.items():
        heading = [f"### {name.capitalize()}", ""] if lines else []
        lines += [*heading, *_render_config(records, config, overlaps[name])]
    return [*lines, *_left_out(records, configs.values())]


def _render_config(records: Sequence[Record], config: str, overlap: Overlap) -> list[str]:
    latest = {one["seed"]: one for one in records if one["config"] == config}
    rendered = [latest[seed] for seed in sorted(latest)]
    if not rendered:
        return ["No seed has been run with the current configuration.", ""]
    return [
        *_table_of_shares("success on held-out tasks", "gain", {one["seed"]: one["success"] for one in rendered}, 2),
        *_table_of_shares("rollouts that violated a rule", "change", _violations(rendered), 3),
        *_paragraph(_describe_seeds(len(rendered))),
        *_paragraph(_describe_overlap(overlap)),
        *_row(["seed", "commit", "date", "minutes", "gate"], first=True),
        *(line for one in rendered for line in _row(_origin(one))),
        "",
        *(line for one in rendered for line in _look_ups(one)),
    ]


def _describe_seeds(count: int) -> str:
    if count == 1:
        return "One seed, so no interval."
    return (
        f"Means over {count} seeds, with the value of each seed in parentheses. The interval is "
        "Student's t over seeds, paired by seed."
    )


def _describe_overlap(overlap: Overlap) -> str:
    longer = f", and {overlap.longer_words} of the {overlap.longer} with two or more look-ups" if overlap.longer else ""
    return (
        f"Of the {overlap.held_out} held-out questions, {overlap.texts} occur in training as text and "
        f"{overlap.words} ({overlap.share:.1%}) in the compact format that the planner reads{longer}. They have "
        f"{overlap.forms} different compact forms. Seed 0 trains on {overlap.trained:,} questions."
    )


def _paragraph(text: str) -> list[str]:
    return [*wrap(text, 120, break_long_words=False, break_on_hyphens=False), ""]


def _table_of_shares(
    title: str, change: str, shares: Mapping[int, Mapping[str, Mapping[str, float]]], digits: int
) -> list[str]:
    """Render shares by seed, mode and `WHEN`. Empty if there are none."""
    if not shares:
        return []
    head = [title, "before", "after", f"{change} (95 %)", "imitation of the same rollouts"]
    return [*_row(head, first=True), *(line for mode in MODES for line in _row(_shares(shares, mode, digits))), ""]


def _shares(shares: Mapping[int, Mapping[str, Mapping[str, float]]], mode: str, digits: int) -> list[str]:
    by_when = {when: {seed: of[mode][when] for seed, of in shares.items() if when in of[mode]} for when in WHEN}
    change = render_mean(paired(by_when["after"], by_when["before"]), signed=True, digits=digits)
    before, after, compared = (_mean(list(values.values()), digits) for values in by_when.values())
    return [mode, before, after, change, compared]


def _violations(rendered: Sequence[Record]) -> dict[int, dict[str, dict[str, float]]]:
    """Return the shares of rollouts that violated a rule, by seed. Empty if a record does not have them."""
    known = {one["seed"]: one["violations"] for one in rendered if "violations" in one}
    return known if len(known) == len(rendered) else {}


def _mean(shares: Sequence[float], digits: int) -> str:
    if not shares:
        return "-"
    return f"{statistics.fmean(shares):.{digits}f} ({', '.join(f'{share:.{digits}f}' for share in shares)})"


def _origin(one: Record) -> list[str]:
    return [str(one["seed"]), one["commit"], one["date"], f"{one['minutes']:.1f}", one["rejection_reason"] or "passed"]


def _look_ups(one: Record) -> list[str]:
    result = one["by_look_ups"]
    names = [when for when in WHEN if when in result]
    lines = _row([f"seed {one['seed']}, greedy, by look-ups", *names], first=True)
    for hops in sorted({hops for name in names for hops in result[name]}):
        shares = [result[name][hops] for name in names]
        lines += _row([hops, *(f"{right:.0%} correct, {broken:.0%} violated a rule" for right, broken in shares)])
    return [*lines, ""]


def _left_out(records: Sequence[Record], configs: Collection[str]) -> list[str]:
    latest = {(one["config"], one["seed"]): one for one in records if one["config"] in configs}
    older = [one for one in records if one not in latest.values()]
    named = "; ".join(f"seed {one['seed']} at {one['commit']}, {one['date']}" for one in older)
    return [f"Not shown, because they have another configuration or the seed was run again: {named}."] if older else []


def _row(cells: Sequence[str], *, first: bool = False) -> list[str]:
    """Render a row of a table. The first row is followed by the separator line."""
    line = "| " + " | ".join(cells) + " |"
    return [line] if not first else [line, "|" + "---|" * len(cells)]
