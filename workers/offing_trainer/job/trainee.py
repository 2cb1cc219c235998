"""Weights and the chain that trains them: a step's groups in, moved weights and figures out.

The only home of how `update` and a learner are put together: which columns are computed, by whom, and when.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import numpy as np

from offing.core.rows import TrainRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead
from offing_trainer import references
from offing_trainer.batch import Floats
from offing_trainer.chain import Chain, Columns, chain_for, needed_columns
from offing_trainer.config import TrainConfig
from offing_trainer.job.contract import Said, Stepped
from offing_trainer.job.lineage import Policies
from offing_trainer.job.reading import Read, read, read_answers, read_earlier
from offing_trainer.job.texts import Kept, with_texts
from offing_trainer.learner.contract import Forwarded, Learner
from offing_trainer.learner.contract import Stepped as Moved
from offing_trainer.seam import REPLAY
from offing_trainer.texts import Reader
from offing_trainer.update import KEPT, Prepared, Tally, Viewed, columns_of, loss_of, measured, prepared, viewed

NOT_FINITE = "not_finite"

REFERENCE = "logp_ref"


class Tokenizer(Reader, references.Speller, Protocol):
    """The policy's, for text that is to be imitated, and for reference answers."""


@dataclass(slots=True)
class ChainTrainee:
    """`contract.Trainee` for a chain of plug-ins."""

    config: TrainConfig
    chain: Chain
    open: Callable[[], Learner]
    """The policy that the job begins with, opened anew."""
    open_reference: Callable[[], Learner]
    reader: Callable[[], Tokenizer]
    """Opened when it is first needed."""
    learner: Learner
    reference: Learner | None = None
    kept: Kept = field(default_factory=Kept)

    def load(self, folder: Path | None) -> None:
        if folder is None:
            self.learner = self.open()
        else:
            self.learner.load(folder)

    def save(self, folder: Path) -> None:
        self.learner.save(folder)

    def export(self, folder: Path) -> None:
        self.learner.export_policy(folder, self.config.learner.kind)

    async def read(
        self, database: Database, tenant: UUID, heads: Sequence[GroupHead], state: Mapping[str, Any]
    ) -> Read:
        """Recorded tokens; where nothing needs their log-probabilities, text too, of rollouts that have no tokens."""
        roles, doubted = self.config.data.roles, self.config.data.quarantined
        found = await read(database, tenant, heads, roles, quarantined=doubted)
        if REPLAY in self.chain.tables:
            runs = _replayable(state, heads)
            found = replace(found, earlier=await read_earlier(database, tenant, runs, roles, quarantined=doubted))
        if found.without_ids and imitates(self.chain, self.config.learner.mode):
            found = await with_texts(database, tenant, found, roles, self.reader(), self.kept)
        if asks_references(self.chain):
            found = replace(found, answers=await read_answers(database, tenant, {head.task for head in heads}))
        return found

    def step(self, read: Read, state: Mapping[str, Any], step: int, progress: float, said: Said) -> Stepped:
        rng = np.random.default_rng([self.config.learner.seed, step])
        seen = viewed(self.chain, read.groups, state, rng, facts=_facts(read), earlier=read.earlier)
        ready = self._measured(self._prepared(seen, read.answers, rng, progress, said), said)
        moved, tally = self._moved(ready, said)
        figures = {
            **ready.figures,
            **tally.figures(),
            **_of_moves(moved),
            "turns_without_ids": float(read.without_ids),
        }
        fates = _fates(ready, lost=bool(moved) and all(one.skipped for one in moved))
        return Stepped({k: v for k, v in figures.items() if np.isfinite(v)}, fates, ready.state)

    def _prepared(
        self, seen: Viewed, answers: Mapping[str, str], rng: np.random.Generator, progress: float, said: Said
    ) -> Prepared:
        said("forward")
        early = self._needs.early - references.COLUMNS
        columns = self._columns(seen.rows, early, lambda forwarded, names: columns_of(seen.batch, forwarded, names))
        if asks_references(self.chain):
            columns |= self._of_references(seen, answers)
        return prepared(self.chain, seen, columns, rng, progress=progress, learner=self.config.learner)

    def _of_references(self, seen: Viewed, answers: Mapping[str, str]) -> dict[str, Floats]:
        """One forward of a row for each context in which a turn began."""
        introduction = self.config.data.answer_introduction
        asked = references.asked(seen.batch, seen.rows, answers, introduction, self.reader())
        return references.columns_of(seen.batch, asked, self.learner.forward(asked.rows).logp)

    def _measured(self, chosen: Prepared, said: Said) -> Prepared:
        late = self._needs.late
        columns = self._columns(
            chosen.live_rows, late, lambda forwarded, names: columns_of(chosen.batch, forwarded, names, chosen.live)
        )
        said("forwarded")
        return measured(self.chain, chosen, columns)

    @property
    def _needs(self) -> Columns:
        return needed_columns(self.chain, self.config.learner.mode)

    def _columns(
        self,
        rows: Sequence[TrainRow],
        names: frozenset[str],
        laid: Callable[[Forwarded, frozenset[str]], Mapping[str, Any]],
    ) -> dict[str, Any]:
        ours, theirs = names - {REFERENCE}, names & {REFERENCE}
        found: dict[str, Any] = {}
        if ours:
            found |= laid(self.learner.forward(rows), ours)
        if theirs:
            self.reference = self.reference or self.open_reference()
            found |= laid(self.reference.forward(rows), theirs)
        return found

    def _moved(self, ready: Prepared, said: Said) -> tuple[list[Moved], Tally]:
        moved, tally = list[Moved](), Tally()
        for nth in range(len(ready.steps)):
            rows = ready.rows_of(nth)
            if not rows:
                continue
            said("backward")
            self.learner.forward_backward(rows, loss_of(self.chain, ready, nth, tally))
            said("optimiser")
            moved.append(self.learner.optim_step())
        said("moved")
        return moved, tally


def begin(config: TrainConfig, policies: Policies) -> ChainTrainee:
    """Opens the policy's weights. Raises InvalidInput, for an impossible chain before that."""
    chain = chain_for(config)
    from offing_trainer.learner.local import open_learner
    from offing_trainer.learner.reader import FolderReader

    start, base = Path(policies.start.uri), None if policies.base is None else Path(policies.base.uri)
    reference = Path(policies.reference.uri) if policies.reference else start
    under = base if policies.reference is None else policies.reference_base and Path(policies.reference_base.uri)
    settings = config.learner
    plain = settings.model_copy(update={"critic": None, "kind": "lora" if under else "full"})

    def opened() -> Learner:
        return open_learner(start, settings, base=base)

    return ChainTrainee(
        config,
        chain,
        opened,
        lambda: open_learner(reference, plain, base=under),
        cache(lambda: FolderReader(base or start)),
        opened(),
    )


def imitates(chain: Chain, mode: str) -> bool:
    """Whether tokens without a recorded log-probability can be trained."""
    return not (chain.needs("behaviour") or (mode == "bypass" and chain.needs("logp_old")))


def asks_references(chain: Chain) -> bool:
    """Whether its plug-ins want to know how likely reference answers are."""
    return any(chain.needs(name) for name in references.COLUMNS)


def _replayable(state: Mapping[str, Any], heads: Sequence[GroupHead]) -> list[UUID]:
    """Runs that may be trained again with these groups."""
    table: Mapping[str, Sequence[str]] = state.get(REPLAY, {})
    return [UUID(run) for task in sorted({str(head.task) for head in heads}) for run in table.get(task, ())]


def _facts(read: Read) -> dict[UUID, dict[str, float]]:
    return {
        run: {
            "turns": float(costs.turns),
            "tokens": float(costs.tokens),
            "usd": costs.usd,
            "tool_calls": float(costs.tool_calls),
        }
        for run, costs in read.facts.items()
    }


def _fates(ready: Prepared, *, lost: bool) -> dict[UUID, str]:
    """`lost`: no optimiser step moved anything."""
    return {UUID(run): NOT_FINITE if lost and fate == KEPT else fate for run, fate in ready.fates.items()}


def _of_moves(moved: Sequence[Moved]) -> dict[str, float]:
    norms = [one.grad_norm for one in moved if not one.skipped]
    return {
        "optimiser_steps": float(len(moved)),
        "skipped": float(sum(one.skipped for one in moved)),
        **({"grad_norm": float(np.mean(norms)), "lr": moved[-1].lr} if norms else {}),
    }
