"""Weak starts: small policies from scratch that imitate what a flow's own rules wrote, taught by the learner itself.

The only home of demonstrations. A rule such as `random` writes answers in the form's words and chooses its tools
blindly, so that what imitates it knows how to speak and nothing about the world. A start is made once per flow, lesson
and seed and then shared, so that all arms of a comparison begin with the same weights.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from offing.core.tokens import TokenTrace
from offing.sdk import Rule
from offing.world.compact import VOCABULARY
from tests.results.drawing import opened
from tests.results.play import Call, Flow, How, Played, Seat, Speaker, played
from tests.results.questions import Questions
from tests.results.training import Trained

if TYPE_CHECKING:
    from offing_engine.weights import Policy


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a start is taught."""

    questions: Questions
    rule: str = "random"
    """Of the flow's role."""
    demonstrations: int = 1000
    epochs: int = 4
    batch: int = 32
    """Rollouts of an optimiser step."""
    rate: float = 3e-3
    """Highest; it rises over the first twentieth and falls to nothing by a cosine."""
    turns: int = 8
    size: Literal["tiny", "small"] = "tiny"


def start_of(
    folder: Path, flow: Flow, lesson: Lesson, seed: int, rules: Mapping[str, Rule[Any, Any]] | None = None
) -> Path:
    """The policy's folder, under `folder/starts`; made by whoever comes first.

    `rules`: others than the role's own, by the lesson's name of them.
    """
    name = _name(flow, lesson, seed)
    whole = folder / "starts" / name
    if not whole.is_dir():
        whole.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=whole.parent, prefix=".") as work:
            made = _taught(Path(work), flow, lesson, seed, rules or {})
            with suppress(OSError):  # somebody else was first
                os.rename(made, whole)
    return whole


def demonstrated(
    policy: "Policy", flow: Flow, lesson: Lesson, seed: int, rules: Mapping[str, Rule[Any, Any]]
) -> list[Played]:
    """Rollouts in which the rule answers for the role, as the policy's tokenizer writes them."""
    tasks = lesson.questions.drawn(lesson.demonstrations, seed)
    seats = [Seat(task, 1_000_000 * (seed + 1) + n) for n, task in enumerate(tasks)]
    speaker = ruled(policy, lesson.rule, rules)
    return asyncio.run(played(flow, seats, How(turns=lesson.turns), speaker, policy.renderer))


def _name(flow: Flow, lesson: Lesson, seed: int) -> str:
    said = orjson.dumps(
        [flow.graph.version, flow.role, flow.form, flow.outage, asdict(lesson)], option=orjson.OPT_SORT_KEYS
    )
    return f"{flow.graph.name}-{seed}-{hashlib.sha256(said).hexdigest()[:12]}"


def _taught(work: Path, flow: Flow, lesson: Lesson, seed: int, rules: Mapping[str, Rule[Any, Any]]) -> Path:
    from offing_engine.small import new_policy

    blank = work / "blank"
    new_policy(blank, VOCABULARY, size=lesson.size, seed=seed)
    shown = demonstrated(opened(blank, "blank@1"), flow, lesson, seed, rules)
    trained = Trained(blank, _imitation(lesson, seed))
    trained.step(shown, 0.0)
    return trained.exported(work / "taught")


def _imitation(lesson: Lesson, seed: int) -> Mapping[str, Any]:
    """The recipe for imitation, of all demonstrations: the right ones alone would teach which tools are right."""
    minibatches = -(-lesson.demonstrations // lesson.batch)
    steps = minibatches * lesson.epochs
    learner = {
        "learning_rate": lesson.rate,
        "schedule": "cosine",
        "steps": steps,
        "warmup": max(1, steps // 20),
        "minibatches": minibatches,
        "epochs": lesson.epochs,
        "seed": seed,
    }
    return {"algorithm": "sft", "chain": {"select": []}, "learner": learner}


def ruled(policy: "Policy", name: str, rules: Mapping[str, Rule[Any, Any]] | None = None) -> Speaker:
    """The rule of that name, of `rules` or of the role, as the policy's tokenizer writes it; without probabilities."""
    (end,) = policy.ends

    async def said(call: Call) -> TokenTrace:
        rule = (rules or {}).get(name) or call.role.rules[name]
        assert call.form.write is not None
        ids = (*policy.renderer.ids(call.form.write(rule(call.given, call.chair), call.given)), end)
        return TokenTrace(call.ids, ids, (0.0,) * len(ids), policy.pieces.of(ids), policy.name, "stop")

    return said
