"""Stored groups into a folder of steps for another trainer, chosen and credited as a job of ours would.

A hand-over is no job: it writes no ledger and registers nothing. It remembers where it ended in the folder, and goes on
from there when it is called again. What the other trainer makes is registered with `offing policy add`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.errors import InvalidInput
from offing.storage import training_groups
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead
from offing_trainer.bridges.hand_over import handed_rows, ready_of, write_step
from offing_trainer.bridges.handed import END, Handed, Terms, step_file
from offing_trainer.bridges.terms import learner_of, terms_of
from offing_trainer.chain import Chain, chain_for
from offing_trainer.config import TrainConfig
from offing_trainer.job import choosing
from offing_trainer.job.choosing import Choice, Wanted
from offing_trainer.job.query import groups_wanted
from offing_trainer.job.reading import Read, read
from offing_trainer.seam import REPLAY

PAGE = 64
"""Groups that are looked up at once."""

TIMES_MORE = 4
"""See `config.DataConfig.most_groups_per_step`."""

POLL_SECONDS = 2.0

PLACE = "place.json"
"""In the folder: where the last step ended."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a folder's last step ended."""

    step: int = 0
    after: tuple[datetime, UUID] | None = None
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Tables of plug-ins."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """A step that was handed over."""

    file: Path
    groups: int
    rows: int
    tokens: int
    optimiser_steps: int


Said = Callable[[Wrote], None]


@dataclass(frozen=True, slots=True)
class _Giver:
    database: Database
    tenant: UUID
    config: TrainConfig
    chain: Chain
    terms: Terms
    policy: VersionRow
    folder: Path


async def hand_over(
    database: Database, tenant: UUID, config: TrainConfig, policy: VersionRow, folder: Path, *, follow: bool, said: Said
) -> Place:
    """All whole steps that there are, and the rest as the last one. `follow`: waits for more, until `config.steps`.

    Raises InvalidInput for a chain that cannot be trained elsewhere, and for a folder whose hand-over has ended.
    """
    chain = chain_for(config)
    giver = _Giver(database, tenant, config, chain, terms_of(config, chain), policy, folder)
    _refuse(giver)
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  # a command's own folder, once
    place = _read_place(folder)
    while config.steps is None or place.step < config.steps:
        choice = await _choice(giver, place)
        if choice.enough or (choice.groups and not follow and choice.informative):
            place = await _given(giver, place, choice, said)
        elif follow:
            await asyncio.sleep(POLL_SECONDS)
        else:
            break
    _write(folder / END, {"steps": place.step})
    return place


def _refuse(giver: _Giver) -> None:
    if (giver.folder / END).is_file():
        raise InvalidInput("--out", f"the hand-over in {giver.folder} has ended", "Name another folder.")
    if giver.policy.kind != "full":
        problem = f"{giver.config.policy} is an adapter, and other trainers begin with full weights"
        raise InvalidInput("policy", problem, "Train it here with `offing train`.")
    if REPLAY in giver.chain.tables:
        raise InvalidInput("chain.select", "replayed rollouts are not handed over", "Leave success-replay out.")
    if giver.config.collect is not None:
        raise InvalidInput("collect", "a hand-over takes what is stored", "Leave the table out, or use `offing loop`.")


async def _choice(giver: _Giver, place: Place) -> Choice:
    """The next step's groups. What is taken and not enough is all that there is."""
    data, heads, after = giver.config.data, list[GroupHead](), place.after
    most = data.most_groups_per_step or data.groups_per_step * TIMES_MORE
    wanted = Wanted(data.groups_per_step, data.minimum_informative_groups, most, data.max_version_lag)
    while True:
        async with giver.database.transaction(giver.tenant) as connection:
            now, _ = await training_groups.newest(connection)
            page = await training_groups.page(connection, groups_wanted(data), now, after, PAGE)
        heads += page
        choice = choosing.choose(heads, wanted, giver.config.policy)
        if choice.enough or len(page) < PAGE:
            return choice
        after = (page[-1].completed_at, page[-1].id)


async def _given(giver: _Giver, place: Place, choice: Choice, said: Said) -> Place:
    found = await read(
        giver.database, giver.tenant, choice.groups, giver.config.data.roles, quarantined=giver.config.data.quarantined
    )
    choosing.refuse_mixed(found.tokenizers, giver.policy.tokenizer_sha256, giver.config.policy)
    number = place.step + 1
    handed, state = await asyncio.to_thread(_handed, giver, found, place, number)
    file = step_file(giver.folder, number)
    await asyncio.to_thread(write_step, file, handed)
    after = replace(place, step=number, after=choice.after, state={**place.state, **state})
    _write_place(giver.folder, after)
    tokens = sum(int(row.loss_mask.sum()) for row in handed.rows)
    said(Wrote(file, len(choice.groups), len(handed.rows), tokens, handed.optimiser_steps))
    return after


def _handed(giver: _Giver, found: Read, place: Place, number: int) -> tuple[Handed, Mapping[str, Any]]:
    config = giver.config
    rng = np.random.default_rng([config.learner.seed, number])
    ready = ready_of(giver.chain, config.learner, found.groups, place.state, rng, facts=_facts(found))
    handed = Handed(
        step=number,
        policy=config.policy,
        policy_sha256=giver.policy.sha256,
        tokenizer_sha256=giver.policy.tokenizer_sha256,
        terms=giver.terms,
        learner=learner_of(config),
        optimiser_steps=len(ready.steps),
        rows=tuple(handed_rows(ready, config.policy)),
    )
    return handed, ready.state


def _facts(found: Read) -> dict[UUID, dict[str, float]]:
    return {
        run: {"turns": float(f.turns), "tokens": float(f.tokens), "usd": f.usd, "tool_calls": float(f.tool_calls)}
        for run, f in found.facts.items()
    }


def _read_place(folder: Path) -> Place:
    file = folder / PLACE
    if not file.is_file():
        return Place()
    said = json.loads(file.read_bytes())
    after = said["after"]
    return Place(said["step"], after and (datetime.fromisoformat(after[0]), UUID(after[1])), said["state"])


def _write_place(folder: Path, place: Place) -> None:
    after = place.after and (place.after[0].isoformat(), str(place.after[1]))
    _write(folder / PLACE, {"step": place.step, "after": after, "state": dict(place.state)})


def _write(file: Path, value: Mapping[str, Any]) -> None:
    aside = file.with_name(f".{file.name}")
    aside.write_text(json.dumps(value))
    aside.replace(file)
