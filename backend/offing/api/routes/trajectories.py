"""What runs left for training: one run whole, and many as a stream that a cursor resumes."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import NO_RUN, Responses
from offing.api.routing import StrictRoute
from offing.api.training import TrajectoryOut, trajectory_out
from offing.core.run import RunStatus
from offing.core.trajectory import Outcome
from offing.exports.format import Options, named
from offing.services import trajectories
from offing.storage import trajectories as stored

router = APIRouter(tags=["trajectories"], route_class=StrictRoute)

LINE: dict[str, Any] = {
    "type": "object",
    "required": ["cursor"],
    "properties": {
        "cursor": {"type": ["string", "null"], "description": "Goes on after the last run that is whole at this line."},
        "record": {"type": "object", "description": "In the format asked for. Absent in the last line."},
        "more": {"type": "boolean", "description": "Only in the last line: whether the limit ended the stream."},
    },
}

STREAM: Responses = {
    200: {
        "description": "One JSON document a line; the last has `more`, and a stream without it was cut.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}, "x-line": LINE}},
    }
}

Name = Annotated[str | None, Query(max_length=200)]

Names = Annotated[list[str], Query(max_length=50)]

Reward = Annotated[float | None, Query(allow_inf_nan=False)]


@router.get("/trajectories", response_class=StreamingResponse, responses=STREAM)
async def stream_trajectories(
    caller: Known,
    held: Held,
    format: Annotated[Literal["rows", "tinker", "jsonl_chat", "pairs", "atif"], Query()] = "rows",
    cursor: Annotated[str | None, Query(max_length=200, description="Of any line of an earlier stream.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Runs.")] = 1000,
    kind: Annotated[Literal["rollout", "ask"], Query()] = "rollout",
    graph: Name = None,
    policy: Annotated[str | None, Query(max_length=200, description="NAME@VERSION of at least one turn.")] = None,
    status: Annotated[RunStatus | None, Query()] = None,
    outcome: Annotated[list[Outcome] | None, Query(description="Absent: all but infra_error.")] = None,
    min_reward: Reward = None,
    max_reward: Reward = None,
    since: Annotated[AwareDatetime | None, Query(description="Final at that time or later.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Final before that time.")] = None,
    tag: Names = [],  # noqa: B006
    batch_id: UUID | None = None,
    group_id: UUID | None = None,
    dataset: Name = None,
    split: Name = None,
    role: Names = [],  # noqa: B006
    quarantined: Annotated[bool, Query(description="Turns whose record is in doubt are taken, too.")] = False,
    references: Annotated[bool, Query(description="Reference answers are written.")] = False,
) -> StreamingResponse:
    """Finished runs as training records, the first to become final first. Reads no faster than it is read."""
    wanted = stored.Query(
        *(kind, graph, policy, status, tuple(outcome or ()), min_reward, max_reward, since, until, tuple(tag)),
        *(batch_id, group_id, dataset, split, tuple(role)),
    )
    options = Options(quarantined, references)
    lines = trajectories.stream(held.database, caller.tenant, wanted, named(format), options, cursor, limit)
    first = await anext(lines)  # what is wrong with the request shows here, while it can still be a problem
    return StreamingResponse(_all(first, lines), media_type="application/x-ndjson")


@router.get("/runs/{run_id}/trajectory", responses=NO_RUN)
async def get_trajectory(
    caller: Known,
    held: Held,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**53, description="Seq of the turn before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TrajectoryOut:
    """A run as its rows: segments, and turns with tokens, mask, log-probabilities and spans."""
    return trajectory_out(await trajectories.trajectory(held.database, caller.tenant, run_id, after, limit))


async def _all(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for line in lines:
        yield line
