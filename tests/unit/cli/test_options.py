"""A command gets its options as one value, and says what each of them is for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cyclopts import App

from offing.cli.commands import app
from offing.cli.distillation import DistillOptions
from offing.cli.options import AskOptions, CollectOptions, EvaluateOptions, ForkOptions, PromoteOptions
from offing.cli.trajectories import TrajectoryExportOptions

ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")

LINES: dict[str, tuple[str, Any]] = {
    "ask": (
        "ask why --docs a --docs b --engine all=extractive --path g --depth quick --no-web --code --json",
        AskOptions(
            "why",
            docs=(Path("a"), Path("b")),
            engines=("all=extractive",),
            paths=(Path("g"),),
            depth="quick",
            web=False,
            code=True,
            as_json=True,
        ),
    ),
    "follow-up": (
        "ask shorter --follow-up 1a2b --kind edit",
        AskOptions("shorter", follow_up="1a2b", kind="edit"),
    ),
    "fork": ("fork 1a2b --at 7 --message more", ForkOptions("1a2b", at=7, message="more")),
    "collect": (
        "rollouts collect --tasks t.jsonl --kind lookup --policy planner=a@1 --scorer numeric --tag x --tag y --wait",
        CollectOptions(
            tasks="t.jsonl",
            kinds=("lookup",),
            policies=("planner=a@1",),
            scorers=("numeric",),
            tags=("x", "y"),
            wait=True,
        ),
    ),
    "promote": (
        "policy promote a@1 --replica http://g:8000/v1 --max-kl 0.5",
        PromoteOptions("a@1", replica_urls=("http://g:8000/v1",), max_kl=0.5),
    ),
    "evaluate": (
        "policy evaluate a@1 --dataset d --graph agentflow --sampled",
        EvaluateOptions("a@1", dataset="d", graph="agentflow", sampled=True),
    ),
    "distill": (
        "distill lessons --gate-dataset d --no-cases --detach",
        DistillOptions("lessons", gate_dataset="d", cases=False, detach=True),
    ),
    "export": (
        f"trajectories export x.parquet --outcome answered --outcome truncated --batch {ID} --role planner",
        TrajectoryExportOptions(Path("x.parquet"), outcomes=("answered", "truncated"), batch_id=ID, roles=("planner",)),
    ),
}


@pytest.mark.parametrize("command", LINES)
def test_a_command_line_becomes_one_value(command: str) -> None:
    line, expected = LINES[command]
    _, bound, _ = app.parse_args(line.split(), exit_on_error=False)
    assert bound.args == (expected,)


def test_the_depth_gives_the_turns_unless_they_are_named() -> None:
    assert AskOptions("why", depth="deep").turn_limit == 40
    assert AskOptions("why", depth="deep", max_turns=0).turn_limit == 0


@pytest.mark.parametrize("command", [*LINES, "serve"])
def test_every_option_of_a_command_with_many_has_a_help_text(command: str) -> None:
    words = ["engine", "serve"] if command == "serve" else LINES[command][0].split()
    assert list(_undescribed(*app.parse_commands(words))) == []


def _undescribed(names: tuple[str, ...], apps: tuple[App, ...], _: list[str]) -> Iterator[str]:
    for argument in apps[-1].assemble_argument_collection(parse_docstring=True):
        if argument.show and not argument.parameter.help:
            yield f"{' '.join(names)} {argument.name}"
