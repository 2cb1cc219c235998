"""Weak starts: small policies from scratch that imitate what a graph's own rules wrote, taught by the learner itself.

Demonstrations. A rule such as `random` writes answers in the form's words and chooses its tools
blindly, so that what imitates it knows how to speak and nothing about the world. A start is made once per graph, lesson
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
from offing.sdk import RuleFunction
from offing_world.compact import VOCABULARY
from tests.results.batch_sampling import opened
from tests.results.questions import Questions
from tests.results.rollouts import Call, GraphSetup, How, PlannedRollout, Played, Speaker, played
from tests.results.training import Trained

if TYPE_CHECKING:
    from offing_engine.weights import LoadedPolicy


@dataclass(frozen=True, slots=True)
class Imitation:
    """What a start is taught."""

    questions: Questions
    rule: str = "random"
    """Of the graph's role."""
    demonstrations: int = 1000
    epochs: int = 4
    batch: int = 32
    """Rollouts of an optimizer step."""
    rate: float = 3e-3
    """Highest; it rises over the first twentieth and falls to nothing by a cosine."""
    turns: int = 8
    size: Literal["tiny", "small"] = "tiny"


def start_of(
    folder: Path,
    graph_setup: GraphSetup,
    lesson: Imitation,
    seed: int,
    rules: Mapping[str, RuleFunction[Any, Any]] | None = None,
) -> Path:
    """The policy's folder, under `folder/starts`; made by the first process that needs it.

    `rules`: others than the role's own, by the lesson's name of them.
    """
    name = _name(graph_setup, lesson, seed)
    whole = folder / "starts" / name
    if not whole.is_dir():
        whole.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=whole.parent, prefix=".") as work:
            created = _train_start(Path(work), graph_setup, lesson, seed, rules or {})
            with suppress(OSError):  # somebody else was first
                os.rename(created, whole)
    return whole


def demonstrated(
    policy: "LoadedPolicy",
    graph_setup: GraphSetup,
    lesson: Imitation,
    seed: int,
    rules: Mapping[str, RuleFunction[Any, Any]],
) -> list[Played]:
    """Rollouts in which the rule answers for the role, as the policy's tokenizer writes them."""
    tasks = lesson.questions.drawn(lesson.demonstrations, seed)
    planned = [PlannedRollout(task, 1_000_000 * (seed + 1) + n) for n, task in enumerate(tasks)]
    speaker = ruled(policy, lesson.rule, rules)
    return asyncio.run(played(graph_setup, planned, How(turns=lesson.turns), speaker, policy.chat_template))


def _name(graph_setup: GraphSetup, lesson: Imitation, seed: int) -> str:
    text = orjson.dumps(
        [graph_setup.graph.version, graph_setup.role, graph_setup.form, graph_setup.outage, asdict(lesson)],
        option=orjson.OPT_SORT_KEYS,
    )
    return f"{graph_setup.graph.name}-{seed}-{hashlib.sha256(text).hexdigest()[:12]}"


def _train_start(
    work: Path, graph_setup: GraphSetup, lesson: Imitation, seed: int, rules: Mapping[str, RuleFunction[Any, Any]]
) -> Path:
    from offing_engine.random_policy import create_random_policy

    blank = work / "blank"
    create_random_policy(blank, VOCABULARY, size=lesson.size, seed=seed)
    demonstrations = demonstrated(opened(blank, "blank@1"), graph_setup, lesson, seed, rules)
    trained = Trained(blank, _imitation(lesson, seed))
    trained.step(demonstrations, 0.0)
    return trained.exported(work / "taught")


def _imitation(lesson: Imitation, seed: int) -> Mapping[str, Any]:
    """The recipe for imitation, of all demonstrations: the right ones alone would teach which tools are right."""
    minibatches = -(-lesson.demonstrations // lesson.batch)
    steps = minibatches * lesson.epochs
    learner = {
        "learning_rate": lesson.rate,
        "schedule": "cosine",
        "schedule_steps": steps,
        "warmup_steps": max(1, steps // 20),
        "minibatches": minibatches,
        "epochs": lesson.epochs,
        "seed": seed,
    }
    return {"algorithm": "sft", "pipeline": {"selectors": []}, "learner": learner}


def ruled(policy: "LoadedPolicy", name: str, rules: Mapping[str, RuleFunction[Any, Any]] | None = None) -> Speaker:
    """The rule of that name, of `rules` or of the role, as the policy's tokenizer writes it; without probabilities."""
    (end,) = policy.end_ids

    async def said(call: Call) -> TokenTrace:
        rule = (rules or {}).get(name) or call.role.rules[name]
        assert call.form.write is not None
        ids = (*policy.chat_template.encode(call.form.write(rule(call.given, call.chair), call.given)), end)
        return TokenTrace(call.ids, ids, (0.0,) * len(ids), policy.token_decoder.decode_each(ids), policy.name, "stop")

    return said
