"""A version in our own engine: asked for until the engine is free, known for what it is, and unloaded last."""

import json
from datetime import UTC, datetime

import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, Unavailable
from offing.models.credentials import EngineEndpoint
from offing.storage.policy_versions import PolicyVersionRow
from offing_trainer.job.engine_deployment import ManagedEngine
from tests.model_provider.replies import Fault, Malformed, Reply
from tests.model_provider.server import Received, WireServer


class Loads:
    """Is busy with a name for a given number of questions, and has these weights."""

    def __init__(self, busy: int = 0, weights: str = "w", *, damaged: bool = False) -> None:
        self.busy, self.weights, self.damaged, self.story = busy, weights, damaged, list[str]()
        self.there = set[str]()

    def __call__(self, request: Received) -> Reply:
        what = request.path.rpartition("/")[2]
        if what == "models":
            return Malformed(json.dumps({"data": [{"id": name} for name in self.there]}).encode())
        self.story.append(f"{what} {request.body['name']}")
        if what == "load_policy" and self.busy:
            self.busy -= 1
            return Fault(409, "planner@1 is being loaded or unloaded.")
        if self.damaged:
            return Fault(400, "path: planner@1 is damaged: model.safetensors is missing. Put it back.")
        self.there.add(request.body["name"])
        return Malformed(json.dumps({"weights_sha256": self.weights}).encode())


def version(number: int) -> PolicyVersionRow:
    return PolicyVersionRow(
        id=new_id(), name="planner", version=number, parent_id=None, kind="full", base_model="", uri=f"/p/{number}",
        sha256="w", tokenizer_sha256="", template_sha256="", state="candidate", lineage={}, evaluation={},
        created_at=datetime(2026, 11, 21, tzinfo=UTC),
    )  # fmt: skip


async def no_sleep(_seconds: float) -> None:
    """Time does not pass in these tests."""


async def test_the_job_waits_for_an_engine_that_loads_the_version_on_its_own() -> None:
    loads = Loads(busy=3)
    async with WireServer(loads) as server:
        await ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)(version(1))
    assert loads.story == ["load_policy planner@1"] * 4


async def test_other_weights_under_the_name_are_rejected() -> None:
    async with WireServer(Loads(weights="x")) as server:
        with pytest.raises(Conflict, match=r"planner@1 from .* with a different weights hash"):
            await ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)(version(1))


async def test_files_that_the_engine_finds_damaged_are_no_reason_to_ask_again() -> None:
    async with WireServer(loads := Loads(damaged=True)) as server:
        with pytest.raises(Conflict, match=r"planner@1 is damaged: model\.safetensors is missing"):
            await ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)(version(1))
    assert loads.story == ["load_policy planner@1"]


async def test_an_engine_that_was_started_anew_is_told_of_the_version_again() -> None:
    async with WireServer(loads := Loads()) as server:
        engine = ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)
        await engine(version(1))
        loads.there.clear()
        await engine(version(1))
        await engine(version(1))
    assert loads.story == ["load_policy planner@1"] * 2


async def test_the_last_two_versions_stay_loaded() -> None:
    loads = Loads()
    async with WireServer(loads) as server:
        engine = ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)
        for number in (1, 2, 2, 3):
            await engine(version(number))
    assert loads.story == [
        "load_policy planner@1", "load_policy planner@2", "load_policy planner@3", "unload_policy planner@1"
    ]  # fmt: skip


async def test_a_version_that_somebody_s_run_was_promised_stays_until_it_was_done() -> None:
    loads, promised = Loads(), {"planner@1"}

    async def needed(label: str) -> bool:
        return label in promised

    async with WireServer(loads) as server:
        engine = ManagedEngine(EngineEndpoint(server.url), needed, no_sleep)
        for number in (1, 2, 3, 4):
            await engine(version(number))
        stored = list(loads.story)
        promised.clear()
        await engine(version(5))
    assert [one for one in stored if one.startswith("unload")] == ["unload_policy planner@2"]
    assert loads.story[-2:] == ["unload_policy planner@1", "unload_policy planner@3"]


async def test_an_engine_that_stays_busy_ends_in_an_error_that_says_so() -> None:
    async with WireServer(Loads(busy=10_000)) as server:
        with pytest.raises(Unavailable, match="being loaded or unloaded"):
            await ManagedEngine(EngineEndpoint(server.url), sleep=no_sleep)(version(1))
