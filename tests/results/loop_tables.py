"""The configurations of the training loop that are measured: the file, and the file with a split of its questions."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offing_trainer.config import merge_tables

CONFIG = Path(__file__).parents[2] / "deploy/loop.toml"

SPLITS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "all": {},
    "unseen": {"collect": {"compositions": "trained"}, "evaluate": {"compositions": "held-out"}},
}
"""What each split changes in the file. `unseen` evaluates on combinations of relations that no training question has,
not even those of the demonstrations."""

EXPERIMENTS = {"all": "training loop", "unseen": "training loop, unseen compositions"}
"""The name of each split's experiment in the table of overlaps."""


def load_tables(split: str) -> dict[str, Any]:
    return merge_tables(tomllib.loads(CONFIG.read_text("utf-8")), SPLITS[split])


def list_entries(split: str) -> list[str]:
    """Return what `offing loop --set` needs for a split."""
    return [f"{table}.{name}={value}" for table, entries in SPLITS[split].items() for name, value in entries.items()]
