"""Learning from judged runs: what there is to learn from, a job that does, and what its version says. Workers do it."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Response

from offing.api.auth import Known
from offing.api.jobs import JobOut, job_out
from offing.api.learning import LearnIn, LibraryText, OutlookOut, gate_of, library_text, outlook_out
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.routing import StrictRoute
from offing.services import learning
from offing.services.learning import Wanted

router = APIRouter(tags=["training"], route_class=StrictRoute)

Name = Annotated[str, Path(max_length=100, description="Of the prompt library.")]


@router.get("/prompt-libraries/{name}/outlook", responses=problems(_409="The name is that of weights."))
async def get_outlook(caller: Known, held: Held, name: Name) -> OutlookOut:
    """How many judged runs there are that a library has not learned from."""
    return outlook_out(name, await learning.outlook(held.database, caller.tenant, name))


@router.post(
    "/prompt-libraries/{name}/jobs",
    status_code=201,
    responses=TOO_LARGE
    | {200: {"model": JobOut, "description": "This very job has not ended yet."}}
    | problems(_409="Another job learns for it, or the name is that of weights."),
)
async def learn(caller: Known, held: Held, name: Name, wanted: LearnIn, response: Response) -> JobOut:
    """Queue a job that compares judged runs and registers what they teach as a candidate. It is a training job of kind
    `prompts`, watched and told what to do as one."""
    engine = wanted.engine or held.default_engine
    gate = gate_of(wanted.gate, held.default_engine) if wanted.gate else None
    request = Wanted(name, engine, wanted.graph, wanted.tag, wanted.groups, wanted.cases, wanted.usd, gate)
    job, new = await learning.create(held.database, caller.tenant, request, held.graphs)
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/api/v1/training-jobs/{job.id}"
    return job_out(job)


@router.get("/policies/{policy_id}/library", responses=problems(_404="There is no such policy version."))
async def get_library(caller: Known, held: Held, policy_id: UUID) -> LibraryText:
    """What a version of a prompt library says, which runs each part comes from, and what it changed."""
    return library_text(await learning.contents(held.database, caller.tenant, policy_id))
