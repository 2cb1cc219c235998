"""A chain of plug-ins with their options, checked before any work. The only home of what makes a chain impossible."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pydantic import ValidationError

from offing.core.errors import InvalidInput
from offing_trainer.catalogue import Catalogue, every
from offing_trainer.config import Asked, AskedTerm, ChainConfig, TrainConfig
from offing_trainer.references import COLUMNS as OF_REFERENCES
from offing_trainer.seam import COLUMNS, SINGLE, Options, Plugin, Seam

SAMPLED = frozenset({"behaviour", "entropy"})
"""What a batch brings itself."""

EARLY = frozenset({Seam.REWARD, Seam.ADVANTAGE, Seam.MODIFIER})
"""Seams whose columns are needed before it is known which rows are trained."""

FACT = "facts."
"""Begins the name of a fact about rollouts among what a plug-in needs."""


class ImpossibleChain(InvalidInput):
    """These plug-ins cannot work together, or not with this configuration."""

    code = "impossible_chain"


@dataclass(frozen=True, slots=True)
class Link:
    """A plug-in with its options."""

    plugin: Plugin
    options: Options
    coefficient: float = 1.0
    """Of a regulariser."""

    @property
    def needs(self) -> frozenset[str]:
        more = self.plugin.also_needs
        return self.plugin.needs | (more(self.options) if more else frozenset[str]())

    def apply(self, *given: Any) -> Any:
        return self.plugin.apply(self.options, *given)


@dataclass(frozen=True, slots=True)
class Chain:
    """Made by `chain_of`, so that it is possible."""

    links: tuple[Link, ...]

    def at(self, seam: Seam, stage: str = "") -> tuple[Link, ...]:
        return tuple(link for link in self.links if link.plugin.seam is seam and link.plugin.stage == stage)

    def only(self, seam: Seam) -> Link:
        return self.at(seam)[0]

    @property
    def smallest_group(self) -> int:
        return max(link.plugin.smallest_group for link in self.links)

    @property
    def unscored(self) -> bool:
        """Whether rollouts without a reward may be trained on."""
        return self.only(Seam.ADVANTAGE).plugin.unscored

    @property
    def tables(self) -> frozenset[str]:
        """Of state."""
        return frozenset[str]().union(*(link.plugin.state for link in self.links))

    def needs(self, name: str) -> bool:
        return any(name in link.needs for link in self.links)

    @property
    def facts(self) -> frozenset[str]:
        """Names of `Batch.facts` that there must be."""
        needs = frozenset[str]().union(*(link.needs for link in self.links))
        return frozenset(name.removeprefix(FACT) for name in needs if name.startswith(FACT))


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns that somebody has to compute."""

    early: frozenset[str]
    """For all viewed rows, before `prepared`."""
    late: frozenset[str]
    """For the rows that are trained, before `measured`."""


def needed_columns(chain: Chain, mode: str = "bypass") -> Columns:
    """Mode as in `config.LearnerConfig`; in bypass form `logp_old` is what was sampled, and nobody computes it."""
    known = SAMPLED | ({"logp_old"} if mode == "bypass" else frozenset[str]())
    early, late = (_needed(chain, when) - known for when in (True, False))
    return Columns(early, late - early)


def _needed(chain: Chain, early: bool) -> frozenset[str]:
    links = [link for link in chain.links if (link.plugin.seam in EARLY) == early]
    needs = frozenset[str]().union(*(link.needs for link in links))
    return frozenset(name for name in needs if not name.startswith(FACT))


def chain_of(
    asked: ChainConfig,
    catalogue: Catalogue | None = None,
    *,
    sources: frozenset[str] = frozenset(COLUMNS),
    group_size: int | None = None,
) -> Chain:
    """The chain that was asked for, of what is installed unless a catalogue is given.

    `sources`: columns that can be computed. `group_size`: None, not known before. Raises ImpossibleChain.
    """
    known = every() if catalogue is None else catalogue
    chain = Chain(tuple(_link(known, *found) for found in _asked(asked)))
    _refuse_wrong_count(chain)
    _refuse_missing_columns(chain, sources)
    _refuse_double_claims(chain)
    _refuse_conflicts(chain)
    _refuse_small_groups(chain, group_size)
    return chain


def chain_for(config: TrainConfig, catalogue: Catalogue | None = None) -> Chain:
    """The chain of a job, with what its own learner can compute. Raises ImpossibleChain."""
    chain = chain_of(config.chain, catalogue, sources=sources_of(config), group_size=config.data.group_size)
    _refuse_idle_correction(chain, config.learner.mode)
    return chain


def sources_of(config: TrainConfig) -> frozenset[str]:
    """Columns that a job can compute."""
    critic = config.learner.critic
    learned = frozenset({"logp_old", "logp_start", "logp_ref"}) | OF_REFERENCES
    return learned | (frozenset[str](critic.columns) if critic else frozenset[str]())


def _asked(config: ChainConfig) -> Iterator[tuple[str, Seam, Asked]]:
    seams: Mapping[str, tuple[Seam, Sequence[Asked]]] = {
        "view": (Seam.VIEW, config.view),
        "reward": (Seam.REWARD, config.reward),
        "select": (Seam.SELECT, config.select),
        "advantage": (Seam.ADVANTAGE, config.advantage),
        "modifiers": (Seam.MODIFIER, config.modifiers),
        "weight": (Seam.WEIGHT, config.weight),
        "surrogate": (Seam.SURROGATE, config.surrogate),
        "regularise": (Seam.REGULARISE, config.regularise),
    }
    for field, (seam, entries) in seams.items():
        for nth, entry in enumerate(entries):
            yield f"chain.{field}" + (f"[{nth}]" if len(entries) > 1 else ""), seam, entry


def _link(catalogue: Catalogue, field: str, seam: Seam, asked: Asked) -> Link:
    plugin = catalogue.get((seam, asked.name))
    if plugin is None:
        raise ImpossibleChain(field, f"there is no plug-in {asked.name} for {seam}", _others(catalogue, seam, asked))
    coefficient = asked.coefficient if isinstance(asked, AskedTerm) else 1.0
    try:
        return Link(plugin, plugin.options.model_validate(asked.options), coefficient)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([field, *(str(part) for part in first["loc"])])
        raise ImpossibleChain(where, f"{asked.name}: {first['msg'].lower()}", _choices(plugin)) from error


def _others(catalogue: Catalogue, seam: Seam, asked: Asked) -> str:
    elsewhere = [other for other, name in catalogue if name == asked.name]
    names = ", ".join(sorted(name for at, name in catalogue if at is seam)) or "none"
    return f"It belongs under {elsewhere[0]}." if elsewhere else f"There are: {names}."


def _choices(plugin: Plugin) -> str:
    return f"Its options are: {', '.join(plugin.options.model_fields) or 'none'}."


def _refuse_wrong_count(chain: Chain) -> None:
    for seam in sorted(SINGLE):
        names = [link.plugin.name for link in chain.at(seam)]
        if not names:
            raise ImpossibleChain(f"chain.{seam}", "nothing is named", "Name exactly one plug-in.")
        if len(names) > 1:
            raise ImpossibleChain(f"chain.{seam}", f"{_and(names)} cannot both be there", "Keep exactly one of them.")
    if not chain.at(Seam.WEIGHT):
        raise ImpossibleChain("chain.weight", "nothing is named", "Name one; token-mean, for example.")


def _refuse_missing_columns(chain: Chain, sources: frozenset[str]) -> None:
    for link in chain.links:
        needs = {name for name in link.needs if not name.startswith(FACT)}
        for name in sorted(needs - SAMPLED - sources):
            raise ImpossibleChain(
                _where(link), f"{link.plugin.name} needs {name}, and nothing here computes it", _source(name)
            )


def _source(name: str) -> str:
    if name == "value_after":
        return 'What a rollout saw last before a limit is in no stored row. Set at_cut to "compat" or "off".'
    if name.startswith("value"):
        return f'Add it to learner.critic: columns = ["{name}"]; or choose another plug-in.'
    meaning = COLUMNS.get(name)
    return f"Choose another plug-in; {name} is {meaning}." if meaning else "No column has that name; see COLUMNS."


def _refuse_double_claims(chain: Chain) -> None:
    for one, other in combinations(chain.links, 2):
        for claim in sorted(one.plugin.claims & other.plugin.claims):
            names = _and([one.plugin.name, other.plugin.name])
            raise ImpossibleChain(_where(other), f"{names} both claim {claim}", "Keep one of them.")


def _refuse_conflicts(chain: Chain) -> None:
    for one, other in combinations(chain.links, 2):
        names = _and([one.plugin.name, other.plugin.name])
        reason = one.plugin.conflicts.get(other.plugin.name) or other.plugin.conflicts.get(one.plugin.name)
        if reason:
            raise ImpossibleChain(_where(other), f"{names} cannot work together: {reason}", "Keep one of them.")


def _refuse_small_groups(chain: Chain, size: int | None) -> None:
    for link in chain.links:
        least = link.plugin.smallest_group
        if size is not None and size < least:
            raise ImpossibleChain(
                _where(link),
                f"{link.plugin.name} needs groups of {least} rollouts, and data.group_size is {size}",
                "Collect larger groups, or choose another plug-in.",
            )


def _refuse_idle_correction(chain: Chain, mode: str) -> None:
    """A weight of the anchor over behaviour is 1 everywhere where the anchor is behaviour."""
    for link in chain.at(Seam.WEIGHT):
        if mode == "bypass" and {"logp_old", "behaviour"} <= link.needs:
            raise ImpossibleChain(
                _where(link),
                f"{link.plugin.name} does nothing in bypass form, where the anchor is what was sampled",
                'Set learner.mode to "decoupled", or leave it out.',
            )


def _where(link: Link) -> str:
    names = {Seam.MODIFIER: "modifiers"}
    return f"chain.{names.get(link.plugin.seam, link.plugin.seam)}"


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
