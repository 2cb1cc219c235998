"""Rows and episodes as plain values, and back: what every format that holds them agrees on.

The only home of the columns' names. Needs numpy only to give a row back.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, get_type_hints
from uuid import UUID

from offing.core.episode import Cost, Episode, References, Score, SegmentHead
from offing.core.trajectory import Fracture

IDS = frozenset(name for name, hint in get_type_hints(Episode).items() if hint in (UUID, UUID | None))
"""Columns of an episode that are ids."""

TIMES = frozenset(name for name, hint in get_type_hints(Episode).items() if hint in (datetime, datetime | None))

EPISODE = {f.name: f"{f.name}_id" if f.name in IDS else f.name for f in fields(Episode) if f.name != "cost"}
"""Field to column: `run` is `run_id`, so that no reader takes an id for the thing."""

COST = {f.name: f"run_{f.name}" for f in fields(Cost)}
"""Field of an episode's cost to column; all null where it is not known."""

HEAD = {
    "idx": "segment",
    "role": "role",
    "fracture": "fracture",
    "parent": "parent_segment",
    "parent_tokens": "parent_tokens",
}

ACCEPTED = "accepted"
"""Whether a role could use what was said; a completion that none could is a segment of its own."""


def episode_columns(episode: Episode) -> dict[str, Any]:
    """Plain values by column; times stay times, and what has parts is made of dictionaries."""
    plain = {column: getattr(episode, name) for name, column in EPISODE.items()}
    for name in IDS:
        value = plain[EPISODE[name]]
        plain[EPISODE[name]] = None if value is None else str(value)
    plain["tags"] = list(episode.tags)
    plain["scores"] = [asdict(score) for score in episode.scores]
    plain["references"] = None if episode.references is None else asdict(episode.references)
    return plain | {column: getattr(episode.cost, name, None) for name, column in COST.items()}


def episode_of(columns: Mapping[str, Any]) -> Episode:
    """The episode that `episode_columns` was given; times may be ISO texts."""
    plain = {name: columns[column] for name, column in EPISODE.items()}
    for name in IDS:
        plain[name] = None if plain[name] is None else UUID(plain[name])
    for name in TIMES:
        if isinstance(plain[name], str):
            plain[name] = datetime.fromisoformat(plain[name])
    references = plain["references"]
    plain["tags"] = tuple(plain["tags"])
    plain["scores"] = tuple(Score(**score) for score in plain["scores"])
    plain["references"] = (
        None if references is None else References(tuple(references["answers"]), tuple(references["evidence"]))
    )
    return Episode(**plain, cost=_cost_of(columns))


def _cost_of(columns: Mapping[str, Any]) -> Cost | None:
    known: dict[str, Any] = {name: columns.get(column) for name, column in COST.items()}
    return None if known["turns"] is None else Cost(**known)


def head_columns(head: SegmentHead) -> dict[str, Any]:
    plain = {column: getattr(head, name) for name, column in HEAD.items()}
    return plain | {ACCEPTED: head.fracture != Fracture.REJECTED}


def head_of(columns: Mapping[str, Any]) -> SegmentHead:
    return SegmentHead(**{name: columns[column] for name, column in HEAD.items()})
