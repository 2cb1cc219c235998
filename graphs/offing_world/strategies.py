"""Ways to choose the next call in a world of any difficulty: an oracle, random calls and a greedy heuristic.

They see what an agent sees: the question and the results of earlier calls. Only the oracle knows which tools answer
what. `simulate` plays a strategy without a graph, one call per turn.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from offing_world.fact_lookup import is_out, look_up
from offing_world.facts import World
from offing_world.question_solver import NOT_ANSWERABLE, KnownFact, LookUp, find_answer, find_missing_look_ups
from offing_world.semantics import SHELF, TOOLS, list_candidate_tools
from offing_world.spec import WorldOption

CURIOSITY = 0.3
"""Probability that random calls ask for the shelf of an entity in a world with the option `key`."""
OUTAGE_RESERVE = 2.5
"""With outages, the factor by which a budget is larger, so that an oracle seldom fails for lack of turns."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished call."""

    tool: str
    look_up: LookUp
    fact: KnownFact | None
    """`None` means that the call failed."""


@dataclass(frozen=True, slots=True)
class Move:
    """The next call."""

    tool: str
    look_up: LookUp


Strategy = Callable[[str, Sequence[Attempt], Random], Move]
"""A function of the question, the attempts so far and the random numbers of the rollout."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A finished rollout of a strategy."""

    attempts: tuple[Attempt, ...]
    answer: str
    """Empty if look-ups were missing at the end."""

    def is_right(self, answers: Sequence[str]) -> bool:
        """Return whether the answer is accepted. No accepted answers mean that the question has none."""
        return self.answer in (answers or (NOT_ANSWERABLE,))


def simulate(world: World, question: str, strategy: Strategy, turns: int, seed: int) -> Simulated:
    """Play a strategy until nothing is missing or all turns are used. The same seed gives the same rollout."""
    rng, attempts = Random(f"strategy {seed}"), list[Attempt]()
    while len(attempts) < turns and find_need(question, attempts):
        move = strategy(question, attempts, rng)
        attempts.append(_call(world, move, f"{seed} {len(attempts)}"))
    return Simulated(tuple(attempts), find_answer(question, list_facts(attempts)) or "")


def list_facts(attempts: Sequence[Attempt]) -> tuple[KnownFact, ...]:
    return tuple(attempt.fact for attempt in attempts if attempt.fact is not None)


def find_need(question: str, attempts: Sequence[Attempt]) -> LookUp | None:
    """Return the first look-up that is missing. `None` means that the question can be answered."""
    return next(iter(find_missing_look_ups(question, list_facts(attempts))), None)


def count_worst_calls(options: Sequence[str], hops: int) -> int:
    """Return the calls with which the oracle answers a question with this number of look-ups.

    With outages, the oracle needs more in a few of a hundred rollouts.
    """
    calls = 3 if WorldOption.NOISE in options else 2 if WorldOption.REFERRAL in options else 1
    calls += WorldOption.KEY in options
    return math.ceil(calls * hops * (OUTAGE_RESERVE if WorldOption.OUTAGE in options else 1)) + 2 * (
        WorldOption.OUTAGE in options
    )


def build_oracle(options: Sequence[str]) -> Strategy:
    """Return the strategy that makes each needed call once: the entity's shelf if it counts, then the right tools."""

    def choose(question: str, attempts: Sequence[Attempt], _rng: Random) -> Move:
        need = _require_need(question, attempts)
        shelf = find_known_shelf(need.entity, attempts)
        if WorldOption.KEY in options and shelf is None:
            return Move(TOOLS[0], LookUp(SHELF, need.entity))
        candidates = list_candidate_tools(need.relation, options, shelf or 0)
        tools = {attempt.tool for attempt in attempts if attempt.look_up == need and attempt.fact}
        return Move(next((tool for tool in candidates if tool not in tools), candidates[0]), need)

    return choose


def build_random(options: Sequence[str], curiosity: float = CURIOSITY) -> Strategy:
    """Return the strategy that makes the next look-up with any tool, or asks for a shelf if there are shelves."""

    def choose(question: str, attempts: Sequence[Attempt], rng: Random) -> Move:
        need, tool = _require_need(question, attempts), rng.choice(TOOLS)
        is_curious = WorldOption.KEY in options and rng.random() < curiosity
        return Move(tool, LookUp(SHELF, need.entity) if is_curious else need)

    return choose


def choose_greedily(question: str, attempts: Sequence[Attempt], _rng: Random) -> Move:
    """Ask one tool after the other until one answers, and believe it."""
    need = _require_need(question, attempts)
    tries = sum(attempt.look_up == need for attempt in attempts)
    return Move(TOOLS[tries % len(TOOLS)], need)


def find_known_shelf(entity: str, attempts: Sequence[Attempt]) -> int | None:
    """Return the shelf of an entity that a call told. `None` means that none did."""
    facts = (fact for fact in list_facts(attempts) if (fact.relation, fact.entity) == (SHELF, entity))
    return next((int(fact.values[0]) for fact in facts), None)


def _require_need(question: str, attempts: Sequence[Attempt]) -> LookUp:
    need = find_need(question, attempts)
    assert need is not None, "a strategy is asked only while something is missing"
    return need


def _call(world: World, move: Move, call: str) -> Attempt:
    relation, entity = move.look_up.relation, move.look_up.entity
    if is_out(world, move.tool, relation, entity, call):
        return Attempt(move.tool, move.look_up, None)
    result = look_up(world, move.tool, relation, entity)
    return Attempt(move.tool, move.look_up, KnownFact(relation, entity, result.values, result.closed, result.witness))
