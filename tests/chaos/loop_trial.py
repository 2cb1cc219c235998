"""A home in which `offing loop` runs, is struck and continues, and what must be true of it afterwards."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from offing.local.processes import list_processes
from offing.local.servers import ServerUrls, open_servers
from offing.models.policy_folder import PolicyHashes, hash_policy
from offing.settings import Settings
from tests.workers.processes import with_tests

STEPS, GROUPS, MEMBERS, DEMONSTRATIONS, FROZEN = 3, 4, 4, 48, 8

CONFIG = f"""
name = "planner"
[start]
demonstration_count = {DEMONSTRATIONS}
worlds = ["train-1@50"]
hops = [1, 1]
engine = "rules:oracle"
sft = {{ max_steps = 12, pipeline = {{ selectors = [] }}, \
data = {{ groups_per_step = {DEMONSTRATIONS}, data_passes = 12 }}, \
learner = {{ learning_rate = 5e-3, minibatches = 6, cpu_threads = 1 }} }}
[collect]
role = "planner"
prompt_format = "compact"
engines = {{ all = "rules:world" }}
worlds = ["train-2@50"]
hops = [1, 1]
max_turns = 3
group_size = {MEMBERS}
[train]
algorithm = "flow-grpo"
max_steps = {STEPS}
data = {{ groups_per_step = {GROUPS}, min_informative_groups = 0 }}
pipeline = {{ view = {{ name = "policy-turns", include_rejected = true }}, \
regularizers = [{{ name = "entropy", coefficient = 0.01 }}] }}
learner = {{ learning_rate = 1e-4, cpu_threads = 1 }}
[evaluate]
worlds = ["heldout-1@50"]
task_count = {FROZEN}
hops = [1, 1]
margin = 1.0
"""

START, END = "planner@2", f"planner@{2 + STEPS}"
"""What imitation made, and what the loop makes of it."""

BATCHES = 1 + STEPS + 4
"""Demonstrations, one a step, and two versions evaluated in two modes."""

ROLLOUTS = DEMONSTRATIONS + STEPS * GROUPS * MEMBERS + 4 * FROZEN

SHORT = {
    "OFFING_LEASE_SECONDS": "3",
    "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.75",
    "OFFING_SWEEP_INTERVAL_SECONDS": "1",
    "OFFING_WORKER_PROCESSES": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}
"""So that what is lost is missed soon."""

SECONDS = 240
"""Of one command at most."""

Query = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement as the owner."""


def strike(phase: str, victim: str, *, times: int = 1, amid: bool = False) -> dict[str, Any]:
    """See `tests.chaos.interrupted_loop`."""
    return {"phase": phase, "victim": victim, "times": times, "amid": amid}


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    code: int
    output: str
    """What it wrote for people."""
    struck: list[str]
    """Phase and victim of each strike."""


@dataclass(frozen=True, slots=True)
class Home:
    """One home; always at the same path, since versions are known by theirs."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "home"

    @property
    def policies(self) -> Path:
        return self.path / "policies"

    @property
    def settings(self) -> Settings:
        return Settings(home=self.path, database_url=None, redis_url=None)

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, **SHORT, "OFFING_HOME": str(self.path), "PYTHONPATH": with_tests(), **more}

    def loop(self, *strikes: dict[str, Any]) -> Ran:
        """Run the command, which is the same each time, to its end. Its processes may be killed meanwhile."""
        config, struck = self.folder / "loop.toml", self.folder / "struck"
        config.write_text(CONFIG, encoding="utf-8")
        struck.write_text("")
        env = self.environment(CHAOS_STRIKES=json.dumps(strikes), CHAOS_STRUCK=str(struck))
        argv = [sys.executable, "-m", "tests.chaos.interrupted_loop", str(config)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
        self.until_quiet()
        print(f"the loop wrote:\n{done.stdout}{done.stderr}", file=sys.stderr)
        return Ran(done.returncode, done.stderr, struck.read_text().splitlines())

    def until_quiet(self) -> None:
        """Servers of a killed loop end by themselves; a moment later."""
        give_up = time.monotonic() + 20
        while list_processes(self.path / "pg", "postgres"):
            assert time.monotonic() < give_up, "Postgres outlived the loop that started it"
            time.sleep(0.05)

    def save_copy(self, name: str) -> None:
        """Remember the current state of the data directory."""
        subprocess.run(["cp", "-a", self.path, self.folder / name], check=True)

    def back_to(self, name: str) -> None:
        shutil.rmtree(self.path)
        subprocess.run(["cp", "-a", self.folder / name, self.path], check=True)

    @contextmanager
    def asking(self) -> Generator[Query]:
        """Its database, on servers for as long as the block lasts."""
        with open_servers(self.settings) as servers, _open_query(servers) as ask:
            yield ask


@contextmanager
def _open_query(servers: ServerUrls) -> Generator[Query]:
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:

        def ask(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
            cursor = owner.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

        yield ask


def flip(file: Path) -> None:
    """Turn the bits of a byte in its middle; done again, they are as they were."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def killed(ran: Ran) -> bool:
    return ran.code == -signal.SIGKILL


# What must be true of a loop that came to its end -------------------------------------------------------------------

CREATED = """
    select o.run_id from app.rollout o join app.rollout_group g on g.id = o.group_id
      join app.rollout_batch b on b.id = g.batch_id where b.request->'tags' ? ('job:' || %s::text)
"""

JOBS = "select id, kind, state, error, step, group_count, rollout_count from app.training_job order by created_at"

LEDGER = "select run_id, reason from app.ledger where job_id = %s"

UNDONE = """
    select (select count(*) from app.run where status not in ('done', 'failed', 'cancelled')),
           (select count(*) from app.rollout where finalized_at is null),
           (select count(*) from app.rollout_group where state <> 'complete')
"""

COUNTED = """
    select (select count(*) from app.rollout_batch), count(*) filter (where outcome <> 'infra_error'),
           count(*) filter (where outcome = 'infra_error')
      from app.rollout
"""

TWICE = """
    select run_id from app.ledger where reason in ('used', 'zero_advantage') group by run_id having count(*) > 1
"""

ACTIVE = "select name || '@' || version from app.policy_version where state = 'active'"

PASSED = """
    select e.detail->>'passed' from app.training_event e join app.policy_version p on p.id = e.policy_version_id
     where e.kind = 'gate' and p.name || '@' || p.version = %s
"""

VERSIONS = "select name || '@' || version, uri, sha256, tokenizer_sha256, template_sha256 from app.policy_version"

MEASURED = (
    "select step, count(*) from app.training_metric where job_id = %s and name = 'groups' group by step order by 1"
)


def complaints(home: Home, *, faults: bool = False) -> list[str]:
    """Everything that is wrong with a loop's home after its end. `faults`: an engine that was long in coming
    back may have cost attempts, which were made again."""
    with home.asking() as ask:
        return [*_of_jobs(ask), *_of_rollouts(ask, faults), *_of_versions(ask), *_left_over(home)]


def _of_jobs(ask: Query) -> list[str]:
    wrong: list[str] = []
    jobs = ask(JOBS)
    if [kind for _, kind, *_ in jobs] != ["train", "loop"]:
        wrong.append(f"there should be one job of each kind: {jobs}")
    for id, kind, state, error, step, groups, stored in jobs:
        ledger = ask(LEDGER, id)
        if (state, error) != ("done", ""):
            wrong.append(f"job {kind} is {state}: {error}")
        if stored != sum(reason == "used" for _, reason in ledger):
            wrong.append(f"job {kind} counts {stored} rollouts, and its ledger {ledger}")
        if [n for n, _ in ask(MEASURED, id)] != list(range(1, step + 1)):
            wrong.append(f"job {kind} did {step} steps and measured {ask(MEASURED, id)}")
        wrong += _of_its_rollouts(ask, id, step, groups, ledger) if kind == "loop" else []
    return wrong


def _of_its_rollouts(ask: Query, job: object, step: int, groups: int, ledger: Sequence[tuple[Any, ...]]) -> list[str]:
    """What was made for the job, and what it decided about it."""
    created, noted = sorted(run for (run,) in ask(CREATED, job)), sorted(run for run, _ in ledger)
    wrong = [] if created == noted else [f"{len(created)} rollouts were made for the loop, and {len(noted)} are noted"]
    whole = [run for run, reason in ledger if reason != "infra_error"]
    if (step, groups, len(whole)) != (STEPS, STEPS * GROUPS, STEPS * GROUPS * MEMBERS):
        wrong.append(f"the loop did {step} steps on {groups} groups of {len(whole)} rollouts")
    return wrong


def _of_rollouts(ask: Query, faults: bool) -> list[str]:
    wrong: list[str] = []
    if ask(UNDONE) != [(0, 0, 0)]:
        wrong.append(f"runs, rollouts and groups that are not over: {ask(UNDONE)}")
    ((batches, rollouts, again),) = ask(COUNTED)
    if (batches, rollouts) != (BATCHES, ROLLOUTS) or (again and not faults):
        wrong.append(f"{batches} batches, {rollouts} rollouts and {again} faults, not {BATCHES} and {ROLLOUTS}")
    if ask(TWICE):
        wrong.append(f"decided on by two jobs: {ask(TWICE)}")
    return wrong


def _of_versions(ask: Query) -> list[str]:
    wrong: list[str] = []
    if ask(ACTIVE) != [(END,)]:
        wrong.append(f"{ask(ACTIVE)} is active, not {END}")
    if set(ask(PASSED, END)) != {("true",)}:
        wrong.append(f"{END} is active, and the gate said {ask(PASSED, END)}")
    for label, uri, *registered in ask(VERSIONS):
        if hash_policy(Path(uri), None) != PolicyHashes(*registered):
            wrong.append(f"the files of {label} are not those that are registered")
    return wrong


def _left_over(home: Home) -> list[str]:
    there = sorted(re.sub(r"^(\.start-.*)-[0-9a-f]{16}$", r"\1", path.name) for path in home.policies.iterdir())
    expected = [".start-planner-0", *(f"planner@{n}" for n in range(2, 3 + STEPS))]
    return [] if there == expected else [f"the folder of policies holds {there}"]
