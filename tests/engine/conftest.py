"""Policies and a running engine, shared by this room's tests."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.engine.engine_server import Served, serving, tiny_policy

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded: tests share their cores

WORDS = [f"w{n}" for n in range(40)]


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two versions of words with different weights, and one of bytes."""
    folder = tmp_path_factory.mktemp("policies")
    return {
        "words@1": tiny_policy(folder / "words@1", WORDS, seed=1),
        "words@2": tiny_policy(folder / "words@2", WORDS, seed=2),
        "bytes@1": tiny_policy(folder / "bytes@1", seed=3),
    }


@pytest.fixture(scope="session")
def served(policies: dict[str, Path]) -> Generator[Served]:
    """One engine for the session; tests that load something unload it."""
    with serving(policies) as engine:
        yield engine
