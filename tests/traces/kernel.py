"""Runs that are submitted, advanced, steered and read in this process.

The only module of this package that knows the names of the run kernel, of the services and of the tables: when those
change, it is the one place to follow. What it reads has names of its own.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal
from uuid import UUID

import psycopg

from offing.core.input_request import InputResponse
from offing.core.run import CancelMode
from offing.services import input_requests
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.runs import RunRequest, cancel_run, pause_run, resume_run, submit_run
from offing.storage import claims, runs, segments
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.claimed_run import ClaimedRun
from offing_workers.slice import Slice, SliceLimits
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.workers.interrupted_runs import Died, Nobody, Quiet

TERM = 30.0

Row = Mapping[str, Any]

ControlRequest = Literal["cancel", "finish", "pause"]
"""What a person may want of a run that is under way; `finish`: that it writes early."""

graphs_named = cache(open_registry)


@dataclass
class Kernel:
    """A database on which runs are advanced in this process, one slice at a time."""

    owner: psycopg.Connection
    app_url: str
    database: Database
    claimed_runs: dict[UUID, ClaimedRun] = field(default_factory=dict[UUID, ClaimedRun])
    """Of the runs that are being advanced."""

    # What is done to runs ---------------------------------------------------------------------------------------------

    async def submit(self, request: RunRequest, graphs: str) -> UUID:
        created = await submit_run(self.database, Quiet(), LOCAL_TENANT, request, graphs=graphs_named(graphs))
        return created.run.id

    async def advance(self, database: Database, run_id: UUID, graphs: str, turns: int) -> None:
        """One slice by a worker of its own; ends with it when it dies. `turns`: of a slice."""
        claim = await claims.claim_run(self.database, run_id, "worker", 0)
        assert claim is not None
        self.ask("update app.run set lease_until = now() + interval '1 hour' where id = %s", run_id)
        self.claimed_runs[run_id] = claimed_run = ClaimedRun(claim.fence)
        limits, known = SliceLimits(TERM, turns, 600.0), graphs_named(graphs)
        try:
            await _survived(Slice(database, Nobody(), Quiet(), known, claim, claimed_run, limits).advance_run())
        finally:
            del self.claimed_runs[run_id]

    async def steer(self, run_id: UUID, request: ControlRequest) -> None:
        """Do what a person does. The worker that has the run hears of it at once, as by a heartbeat."""
        if request == "pause":
            await pause_run(self.database, Quiet(), LOCAL_TENANT, run_id)
        else:
            mode = CancelMode.DISCARD if request == "cancel" else CancelMode.FINISH
            await cancel_run(self.database, Quiet(), LOCAL_TENANT, run_id, mode)
        if (claimed_run := self.claimed_runs.get(run_id)) is not None:
            async with self.database.transaction(LOCAL_TENANT) as connection:
                claimed_run.apply_control_request(await runs.get_control_request(connection, run_id))

    async def resume(self, run_id: UUID) -> None:
        await resume_run(self.database, Quiet(), LOCAL_TENANT, run_id)

    async def list_requests(self, run_id: UUID) -> list[tuple[int, str, bool]]:
        """What a run has asked of people: number, words, whether it is open."""
        result = await input_requests.list_input_requests(self.database, LOCAL_TENANT, run_id)
        return [(one.request.seq, one.request.input_prompt.prompt, one.pending) for one in result]

    async def answer(self, run_id: UUID, number: int, inputs: InputResponse) -> None:
        await input_requests.submit_response(
            self.database, Quiet(), LOCAL_TENANT, run_id, number, inputs, responded_by="somebody"
        )

    def lose(self, run_id: UUID) -> None:
        """The lease of a worker that died, or left a run behind, passes."""
        self.ask("update app.run set lease_until = now() - interval '1 hour' where id = %s", run_id)

    # What is read -----------------------------------------------------------------------------------------------------

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.owner.execute(query.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def rows(self, query: str, *parameters: object) -> list[Row]:
        cursor = self.owner.execute(query.encode(), parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def tree(self, run_id: UUID) -> list[UUID]:
        """A run and those under it, in the order in which they were asked for."""
        return [run_id, *(one for (child,) in self.ask(CHILDREN, run_id) for one in self.tree(child))]

    def thread(self, run_id: UUID) -> UUID:
        ((thread,),) = self.ask("select thread_id from app.run where id = %s", run_id)
        return thread

    def state(self, run_id: UUID) -> tuple[str, int]:
        """Status and turns."""
        ((status, turns),) = self.ask("select status, turns from app.run where id = %s", run_id)
        return status, turns

    async def read_answers(self, run_id: UUID) -> dict[str, str]:
        """What was written to each prompt of a run, by the prompt's messages as JSON."""
        async with self.database.transaction(LOCAL_TENANT) as connection:
            calls = await segments.read_role_calls(connection, run_id)
        return {prompt_key([[m.role, m.text] for m in call.messages]): call.completion for call in calls}

    def charged(self) -> tuple[Any, Any]:
        """What the tenant's days hold as used and as reserved."""
        ((used, reserved),) = self.ask(
            "select coalesce(sum(used_usd), 0), coalesce(sum(reserved_usd), 0) from app.daily_spend"
        )
        return used, reserved

    def left(self, run_id: UUID) -> dict[str, list[Row]]:
        """Everything that a run left, under this package's own names."""
        return {name: self.rows(query, run_id) for name, query in LEFT.items()}

    def texts(self, hashes: Sequence[str]) -> dict[str, str]:
        """Stored parts of prompts by their hash."""
        query = "select encode(sha256, 'hex'), body from app.text_part where encode(sha256, 'hex') = any(%s)"
        return dict(self.ask(query, list(hashes)))


@asynccontextmanager
async def opened(owner_url: str, app_url: str) -> AsyncGenerator[Kernel]:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        async with Database(app_url, max_connections=4) as database:
            yield Kernel(owner, app_url, database)


def prompt_key(messages: Sequence[Sequence[str]]) -> str:
    return json.dumps([list(message) for message in messages])


async def prepared(app_url: str) -> None:
    """The library that the cases read."""
    async with Database(app_url, max_connections=4) as database:
        uploads = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
        await ingest_uploads(database, LOCAL_TENANT, uploads)


async def _survived(work: Awaitable[None]) -> None:
    """A worker that dies on the way is an ending like any."""
    try:
        await work
    except BaseException as error:
        if not (isinstance(error, Died) or "Died" in repr(error)):
            raise


CHILDREN = """
    select c.run_id from app.child_run c join app.run r on r.id = c.run_id where c.parent_id = %s
     order by c.superstep, c.path, r.seed
"""

LEFT = {
    "run": """
        select kind, graph, question, status, stop_reason, error, waiting_for, turns, tokens, cost_usd, seed,
               durability,
               (select coalesce(sum(reserved_usd), 0) from app.reservation r where r.run_id = run.id) as reserved_usd
          from app.run where id = %s
    """,
    "steps": """
        select seq, kind, label, title, detail, ok, turn, tokens, superstep, path, ordinal, payload
          from app.step where run_id = %s order by seq
    """,
    "role_calls": """
        select t.seq, role, engine, model, prompt, completion, sampling, prompt_tokens, completion_tokens, cost_usd,
               priced,
               failed_attempts, trainable, trainable_reason, segment_idx, position, prompt_kept, prompt_offset,
               prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy, weights_sha256, tokenizer_sha256,
               template_sha256, engine_build, finish_reason, is_final, state_key, action_key, quarantine, is_accepted,
               attempt,
               problem, c.superstep as forks_from,
               array(select concat_ws(' ', s.kind, s.start_char, s.end_char, s.start_token, s.end_token)
                       from app.completion_span s where s.run_id = t.run_id and s.seq = t.seq order by s.nth) as spans
          from app.role_call t left join app.checkpoint c on c.run_id = t.run_id and c.checkpoint_id = t.checkpoint_id
         where t.run_id = %s order by t.seq
    """,
    "segments": """
        select idx, role, parent_idx, parent_tokens, boundary_reason from app.segment
         where run_id = %s order by idx
    """,
    "reports": "select version, seq, status, stop_reason, body from app.report where run_id = %s order by version",
    "citations": """
        select report_version, number, text_id as text, source_id as source, start_char, end_char, quote, title
          from app.citation where run_id = %s order by report_version, number
    """,
    "intents": """
        select superstep, path, tool, args, side_effect from app.intent where run_id = %s order by started_at
    """,
    "input_requests": """
        select seq, kind, response, responder, responded_by, consumed_seq, interrupt_id is not null as interrupts
          from app.input_request where run_id = %s order by seq
    """,
    "checkpoints": "select ns, superstep, turn from app.checkpoint where run_id = %s order by superstep, ns",
    "children": """
        select superstep, path, depth, consumed_at is not null as consumed from app.child_run
         where parent_id = %s order by superstep, path, ordinal
    """,
}
