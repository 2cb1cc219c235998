"""Runs on which a fault is tried: what they are asked, when it struck them, and what is expected of them then."""

import asyncio
import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Literal
from uuid import UUID

from offing.bus.notifier import BusNotifier
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.chaos import checker
from tests.chaos.graphs import CALL_MS, GRAPH_NAMES, GRAPHS, NAMES, GraphName
from tests.chaos.private_stack import PrivateStack

Kind = Literal["steady", "varying"] | GraphName

TURNS = 60

DELAY_MS = 25
"""What a scripted call takes, so that a run lasts a few seconds."""

QUESTION = "Why do lighthouses flash, and how does a Fresnel lens save light and glass?"


@dataclass(frozen=True, slots=True)
class Moment:
    """One of the moments of a fault: its number from 1, and dice that fall the same way each time."""

    fault: str
    number: int
    seed: int

    @property
    def dice(self) -> random.Random:
        return random.Random(f"{self.fault} {self.seed} {self.number}")

    def __str__(self) -> str:
        return f"moment {self.number} of {self.fault}, CHAOS_SEED={self.seed}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One run of a trial. `seed` tells its calls from those of others."""

    kind: Kind
    run: UUID
    seed: int


@dataclass
class Trial:
    """The runs of one moment. `struck_at`: when the fault struck, by this machine's clock, which is also Postgres's."""

    stack: PrivateStack
    moment: Moment
    subjects: list[Subject] = field(default_factory=list[Subject])
    struck_at: datetime | None = None

    def until_calls(self, subject: Subject, calls: int) -> None:
        """Wait until a run has made `calls` calls."""
        self.stack.until(f"{calls} calls", lambda: len(self.stack.list_sent_requests(subject.seed)) >= calls)

    def until_at_work(self) -> None:
        """Wait until every run has a call behind it."""
        for subject in self.subjects:
            self.until_calls(subject, 2)

    def until_first_made(self, calls: int, plain: dict[Kind, checker.Rows]) -> None:
        """Wait until the first run has made `calls` calls. No other run has ended by then."""
        self._until_made(self.subjects[0], calls, plain)

    def until_in_the_middle(self, plain: dict[Kind, checker.Rows]) -> None:
        """Wait until one of the runs has made some of its calls, and for a part of the next."""
        dice = self.moment.dice
        lead = dice.choice(self.subjects)
        self._until_made(lead, dice.randint(2, two_thirds(plain, lead.kind)), plain)
        time.sleep(dice.random() / 2)

    def _until_made(self, lead: Subject, calls: int, plain: dict[Kind, checker.Rows]) -> None:
        """Wait until `lead` has made `calls` calls, or another has made two thirds of its own. Which kind is faster
        depends on the machine."""
        enough = {s.seed: two_thirds(plain, s.kind) for s in self.subjects} | {lead.seed: calls}

        def has_calls() -> bool:
            counts = self.stack.calls_made()
            return any(counts[seed] >= number for seed, number in enough.items())

        self.stack.until(f"{calls} calls", has_calls)

    def strike(self) -> None:
        self.struck_at = datetime.now(UTC)

    def until_ended(self, seconds: float = 60) -> None:
        ids = [s.run for s in self.subjects]
        count = "select count(*) from app.run where id = any(%s) and ended_at is null"
        self.stack.until("the runs to end", lambda: self.stack.rows(count, ids) == [(0,)], seconds)

    def owned_by(self, pid: int) -> list[Subject]:
        return [s for s in self.subjects if self.stack.owner(s.run) == pid]

    # What is expected -------------------------------------------------------------------------------------------------

    def found_in_mid_run(self, subject: Subject, rows: checker.Rows) -> list[str]:
        """Complaints when the log does not show that the fault struck this run in the middle of its work."""
        assert self.struck_at is not None
        worked = [s for s in rows.steps if s.key is not None]
        before = sum(s.at < self.struck_at for s in worked)
        ended = rows.run.ended_at
        if before == 0 or before == len(worked) or ended is None or ended < self.struck_at:
            return [f"the fault did not strike in mid-run: {before} of {len(worked)} steps before it"]
        return []

    def complaints(self, subject: Subject, plain: dict[Kind, checker.Rows], losses: int | None = None) -> list[str]:
        """Everything that is wrong with a run. `plain`: what undisturbed runs of each kind left.

        `losses`: how often it may have lost its worker. None: as often as it was claimed again.
        """
        rows = self.stack.facts(subject.run)
        wrong = [*checker.violations(rows), *self.found_in_mid_run(subject, rows)]
        loss_count = rows.run.fence - 1 if losses is None else losses
        wrong += checker.check_charged_once(rows, self.stack.list_sent_requests(subject.seed), loss_count)
        if subject.kind in GRAPH_NAMES:
            return [*wrong, *unlike(rows, plain[subject.kind])]
        wrong += checker.one_tool_call_a_turn(rows, TURNS)
        wrong += check_report_words(rows)
        if subject.kind == "steady":
            wrong += differences(rows, plain["steady"])
        return wrong

    def next_seed(self) -> int:
        return next(_seeds)


def expect(trial: Trial, plain: dict[Kind, checker.Rows], *, fence: set[int], losses: int | None = None) -> None:
    """Every run of the trial was struck in mid-run and ended as if nothing had happened.

    `fence`: how often each may have been claimed in all. `losses`: see `Trial.complaints`.
    """
    wrong = [f"{s.kind} {s.run}: {c}" for s in trial.subjects for c in trial.complaints(s, plain, losses)]
    claimed = {str(s.run): trial.stack.facts(s.run).run.fence for s in trial.subjects}
    if not set(claimed.values()) <= fence:
        wrong.append(f"each run should have been claimed {fence} times: {claimed}")
    assert not wrong, "\n".join([str(trial.moment), *wrong])


def expect_repeated(trial: Trial, plain: dict[Kind, checker.Rows]) -> None:
    """Every run of the trial lost its one slice whole, and did it again with the same result."""
    wrong = list[str]()
    for s in trial.subjects:
        rows, requests = trial.stack.facts(s.run), trial.stack.list_sent_requests(s.seed)
        results = [
            *checker.violations(rows),
            *unlike(rows, plain[s.kind]),
            *checker.check_repeated_whole(rows, requests, 1),
        ]
        if {step.fence for step in rows.steps if step.key} != {2}:
            results.append("it has steps of a lost slice, or was claimed again")
        wrong += [f"{s.kind} {s.run}: {complaint}" for complaint in results]
    assert not wrong, "\n".join([str(trial.moment), *wrong])


def two_thirds(plain: dict[Kind, checker.Rows], kind: Kind) -> int:
    """Of the calls that an undisturbed run makes."""
    rows = plain["steady" if kind == "varying" else kind]
    return sum("role" in s.payload for s in rows.steps) * 2 // 3


def differences(rows: checker.Rows, plain: checker.Rows) -> list[str]:
    """Where a run's report is not that of an undisturbed run. Names of stored texts and of runs are left aside."""
    ours, theirs = ([(r.status, r.reason, r.body, r.quotes) for r in x.reports] for x in (rows, plain))
    return [] if ours == theirs else [f"the report is {ours}, undisturbed it is {theirs}"]


def unlike(rows: checker.Rows, plain: checker.Rows) -> list[str]:
    """Where a graph's run is not an undisturbed one: in its report, or in anything that it did before."""
    return [*differences(rows, plain), *checker.same_record(rows, plain)]


def check_report_words(rows: checker.Rows) -> list[str]:
    """A counting run's report consists of the answers that were recorded, one a turn."""
    recorded = [s.payload["output"]["word"] for s in rows.of_kind("plan")]
    written = [t["text"] for r in rows.reports for part in r.body["sections"] for t in part["sentences"]]
    if len(recorded) != TURNS or written != recorded:
        return [f"the report's words are {written}, the recorded answers {recorded}"]
    return []


@dataclass
class Client:
    """Who submits runs."""

    stack: PrivateStack
    database: Database
    notifier: BusNotifier
    submitted: int = 0

    async def submit(self, kind: Kind, seed: int, durability: str = "sync") -> Subject:
        request = replace(request_of(kind, seed), durability=durability)
        created = await submit_run(self.database, self.notifier, LOCAL_TENANT, request, graphs=open_registry(GRAPHS))
        return Subject(kind, created.run.id, seed)

    async def trial(self, moment: Moment, *kinds: Kind, durability: str = "sync") -> Trial:
        """Runs of these kinds, all at work: each has at least one call behind it."""
        trial = Trial(self.stack, moment)
        for kind in kinds:
            trial.subjects.append(await self.submit(kind, trial.next_seed(), durability))
        await asyncio.to_thread(trial.until_at_work)
        return trial


def request_of(kind: Kind, seed: int) -> RunRequest:
    if kind in GRAPH_NAMES:
        graph, slow = NAMES.get(kind, kind), EngineConfig(options={"slow_ms": CALL_MS[kind]})
        engines = {role.name: slow for role in open_registry(GRAPHS)[graph].roles}
        return RunRequest(QUESTION, graph, engines=engines, seed=seed)
    word = "w{turn}-{nonce}" if kind == "varying" else "w{turn}"
    options = {"answers": [{"word": word}], "vary": kind == "varying", "delay_ms": DELAY_MS}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Count", "counting", budget=Budget(max_turns=TURNS), engines=engines, seed=seed)


_seeds = count(1)
"""Each run's is unlike any other's, so that its calls are known by it."""
