"""Weak starting policies: small policies with random weights that imitate the rules of a graph, trained by the learner.

A rule such as `random` writes answers in the prompt format and selects its tools at random, so a policy that imitates
it knows the format and nothing about the world. A starting policy is made once per graph, SFT configuration and seed,
so that all arms of a comparison start with the same weights.
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
from offing_world.compact_notation import VOCABULARY
from tests.results.batch_sampling import opened
from tests.results.questions import Questions
from tests.results.rollouts import Call, GraphSetup, How, PlannedRollout, Played, Speaker, played
from tests.results.training import Trained

if TYPE_CHECKING:
    from offing_engine.weights import LoadedPolicy


CONCURRENT = 256
"""Number of demonstrations that are played at the same time. More of them keep more objects alive, and Python's garbage
collector then takes a large part of the time."""


@dataclass(frozen=True, slots=True)
class Imitation:
    """The SFT configuration of a starting policy."""

    questions: Questions
    rule: str = "random"
    """The name of the rule of the graph's role."""
    demonstrations: int = 1000
    epochs: int = 4
    batch: int = 32
    """Rollouts per optimizer step."""
    rate: float = 3e-3
    """Maximum learning rate. It rises over the first twentieth of the steps and then falls to 0 as a cosine."""
    turns: int = 8
    size: Literal["tiny", "small"] = "tiny"


def start_of(
    folder: Path,
    graph_setup: GraphSetup,
    lesson: Imitation,
    seed: int,
    rules: Mapping[str, RuleFunction[Any, Any]] | None = None,
) -> Path:
    """Return the policy's folder under `folder/starts`. The first process that needs it creates it.

    `rules` contains rules in addition to those of the role, by name.
    """
    name = _name(graph_setup, lesson, seed)
    whole = folder / "starts" / name
    if not whole.is_dir():
        whole.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=whole.parent, prefix=".") as work:
            created = _train_start(Path(work), graph_setup, lesson, seed, rules or {})
            with suppress(OSError):  # another process was first
                os.rename(created, whole)
    return whole


def demonstrated(
    policy: "LoadedPolicy",
    graph_setup: GraphSetup,
    lesson: Imitation,
    seed: int,
    rules: Mapping[str, RuleFunction[Any, Any]],
) -> list[Played]:
    """Return rollouts in which the rule answers the role, as tokens of the policy's tokenizer."""
    tasks = lesson.questions.drawn(lesson.demonstrations, seed)
    planned = [PlannedRollout(task, 1_000_000 * (seed + 1) + n) for n, task in enumerate(tasks)]
    speaker, how = ruled(policy, lesson.rule, rules), How(turns=lesson.turns)
    parts = (planned[first : first + CONCURRENT] for first in range(0, len(planned), CONCURRENT))
    return [one for part in parts for one in asyncio.run(played(graph_setup, part, how, speaker, policy.chat_template))]


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
    """The recipe for imitation of all demonstrations. The correct ones alone would show which tools are right."""
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
    """The answerer with the rule of that name, from `rules` or the role. It returns tokens without probabilities."""
    (end,) = policy.end_ids

    async def answer(call: Call) -> TokenTrace:
        rule = (rules or {}).get(name) or call.role.rules[name]
        assert call.form.write is not None
        ids = (*policy.chat_template.encode(call.form.write(rule(call.inputs, call.chair), call.inputs)), end)
        return TokenTrace(call.ids, ids, (0.0,) * len(ids), policy.token_decoder.decode_each(ids), policy.name, "stop")

    return answer
