"""A version on several servers of vLLM's wire: everywhere or nowhere, and the pointer last."""

import json
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb

from offing.cli.promotion import serve_on_replicas
from offing.core.errors import Conflict, Unavailable
from offing.models.credentials import EngineEndpoint
from offing.services import promotion
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.job.vllm_deployment import deploy_adapter, undeploy
from tests.model_provider.replies import Fault, Malformed, Reply
from tests.model_provider.server import Received, WireServer
from tests.storage.rollouts import Collected
from tests.trainer.jobs import Bench


class Replica:
    """Knows adapters by name; `story` is what all replicas of a test heard, in order."""

    def __init__(self, name: str, story: list[str], *, refuses: bool = False, forgets: bool = False) -> None:
        self.name, self.story, self.refuses, self.forgets = name, story, refuses, forgets
        self.has = ["base"]

    def __call__(self, request: Received) -> Reply:
        what = request.path.rpartition("/")[2]
        self.story.append(f"{self.name} {what}")
        if what == "models":
            return Malformed(json.dumps({"data": [{"id": name} for name in self.has]}).encode())
        name = request.body["lora_name"]
        if what == "load_lora_adapter":
            if self.refuses:
                return Fault(400, "LoRA is off")
            assert request.body["lora_path"]
            self.has += [] if self.forgets else [name]
            return Malformed(b"Success: LoRA adapter added.")
        if name not in self.has:
            return Fault(404, "no such adapter")
        self.has.remove(name)
        return Malformed(b"Success: LoRA adapter removed.")


async def no_sleep(_seconds: float) -> None:
    """Time does not pass in these tests."""


async def test_every_replica_loads_and_lists_a_version_before_the_pointer_moves() -> None:
    story: list[str] = []
    one, two = Replica("one", story), Replica("two", story)

    async def flip() -> None:
        story.append("flip")

    async with WireServer(one) as a, WireServer(two) as b:
        replicas = [EngineEndpoint(a.url), EngineEndpoint(b.url)]
        await deploy_adapter(replicas, "planner@3", Path("/policies/planner@3"), flip, sleep=no_sleep)
        assert story[-1] == "flip"
        assert all(f"{name} load_lora_adapter" in story for name in ("one", "two"))
        assert max(n for n, line in enumerate(story) if "load" in line) < max(
            n for n, line in enumerate(story) if "models" in line
        )
        await deploy_adapter(replicas, "planner@3", Path("/policies/planner@3"), flip, sleep=no_sleep)
        assert sum("load_lora" in line for line in story) == 2
        for _ in range(2):
            await undeploy(replicas, ["planner@3", "planner@7"])
        assert sum("unload" in line for line in story) == 2
    assert (one.has, two.has) == (["base"], ["base"])


@pytest.mark.parametrize(("how", "error"), [("refuses", Conflict), ("forgets", Unavailable)])
async def test_a_replica_that_cannot_serve_a_version_leaves_the_pointer_where_it_was(
    how: str, error: type[Exception]
) -> None:
    story: list[str] = []

    async def flip() -> None:
        story.append("flip")

    async with WireServer(Replica("one", story)) as a, WireServer(Replica("two", story, **{how: True})) as b:
        replicas = [EngineEndpoint(a.url), EngineEndpoint(b.url)]
        with pytest.raises(error, match=r"planner@3"):
            await deploy_adapter(replicas, "planner@3", Path("/policies/planner@3"), flip, sleep=no_sleep)
    assert "flip" not in story


async def promoted(bench: Bench, version: int, replicas: tuple[str, ...]) -> None:
    async def flip() -> None:
        await promotion.promote(bench.database, LOCAL_TENANT, f"planner@{version}")

    await serve_on_replicas(bench.database, f"planner@{version}", replicas, flip)


async def test_a_promotion_unloads_what_was_retired_but_not_what_runs_or_the_way_back_still_need(bench: Bench) -> None:
    story: list[str] = []
    replica = Replica("one", story)
    for seed in range(4):
        await bench.policy(seed=seed)
    async with WireServer(replica) as server:
        for version in (1, 2):
            await promoted(bench, version, (server.url,))
        with psycopg.connect(bench.owner_url, autocommit=True) as owner:
            group = Collected(bench.database, LOCAL_TENANT, bench.owner_url).group()
            engines = Jsonb({"planner": {"engine": "policy", "model": "planner@1"}})
            owner.execute("update app.rollout_group set state = 'open', engines = %s where id = %s", (engines, group))
            await promoted(bench, 3, (server.url,))
            assert replica.has == ["base", "planner@1", "planner@2", "planner@3"]
            owner.execute("update app.rollout_group set state = 'complete' where id = %s", (group,))
        await promoted(bench, 4, (server.url,))
    assert replica.has == ["base", "planner@3", "planner@4"]


async def test_a_version_that_the_gate_rejects_is_unloaded_again(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    replica = Replica("one", [])
    for seed in range(2):
        await bench.policy(seed=seed)

    async def refuse() -> None:
        raise Conflict("It did not pass.", "Train on.")

    async with WireServer(replica) as server:
        await promoted(bench, 1, (server.url,))
        with pytest.raises(Conflict, match="did not pass"):
            await serve_on_replicas(bench.database, "planner@2", (server.url,), refuse)
    assert replica.has == ["base", "planner@1"]
    assert not capsys.readouterr().err
