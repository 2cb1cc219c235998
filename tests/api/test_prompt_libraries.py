"""Learning from rated runs over HTTP: what there is to learn from, a job, what its version says, and nobody else's."""

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.prompt_library import Case, LibraryEdit, PromptLibrary, apply_edits
from offing.models.policy_folder import PolicyHashes
from offing.services import policies, promotion, prompt_library
from offing.services.policies import PolicyRegistration
from offing.storage.policy_versions import PolicyVersionRow
from tests.api.conftest import Api
from tests.storage.rollouts import Collected

EXPERIENCES = "/api/v1/prompt-libraries/lessons"

ENGINE = {
    "engine": "litellm",
    "model": "openai/gpt-5-mini",
    "options": {"stream": True},
    "fallbacks": [{"engine": "litellm", "model": "openai/gpt-4o-mini", "options": {"stream": True}}],
}


@pytest.fixture
def collected(api: Api, owner_url: str) -> Collected:
    return Collected(api.database, api.tenant, owner_url)


async def a_group(collected: Collected, *rewards: float) -> list[UUID]:
    group = collected.group(size=len(rewards))
    runs = [await collected.rollout(group_id=group, member=n, reward=reward) for n, reward in enumerate(rewards)]
    with psycopg.connect(collected.owner_url, autocommit=True) as owner:
        owner.execute("update app.rollout_group set completed_at = clock_timestamp() where id = %s", (group,))
    return runs


async def a_version(
    api: Api, folder: Path, library: PromptLibrary, parent: PolicyVersionRow | None = None
) -> PolicyVersionRow:
    row, _ = await prompt_library.register_library(
        api.database, api.tenant, "lessons", library, folder, parent_id=parent.id if parent else None,
        lineage={"used_groups": ["a" * 32], "compared": 1},
    )  # fmt: skip
    return row


async def test_rated_runs_are_counted_and_a_job_is_queued_once(api: Api, collected: Collected) -> None:
    empty = (await api.http.get(f"{EXPERIENCES}/preview")).json()
    assert (empty["runs"], empty["start_version"]) == (0, "")
    rejected = await api.http.post(f"{EXPERIENCES}/distill", json={})
    assert (rejected.status_code, rejected.json()["field"]) == (422, "runs")
    await a_group(collected, 1.0, 0.0)
    await a_group(collected, 1.0, 1.0)
    body = (await api.http.get(f"{EXPERIENCES}/preview")).json()
    assert [body[name] for name in ("runs", "new_runs", "new_groups", "comparisons")] == [4, 4, 2, 1]
    assert (body["rated_runs"], body["new_rated_runs"]) == (0, 0), "scored rollouts are no runs that people rated"
    created = await api.http.post(f"{EXPERIENCES}/distill", json={"engine": ENGINE, "max_cost_usd": 0.5})
    job: dict[str, Any] = created.json()
    assert (created.status_code, created.headers["Location"]) == (201, f"/api/v1/training-jobs/{job['id']}")
    assert (job["kind"], job["name"], job["state"], job["waiting_for"]) == ("prompt_library", "lessons", "queued", "")
    assert (job["config"]["max_cost_usd"], job["config"]["engine"]["options"]) == (0.5, {})
    assert [(one["model"], one["options"]) for one in job["config"]["engine"]["fallbacks"]] == [
        ("openai/gpt-4o-mini", {})
    ]
    again = await api.http.post(f"{EXPERIENCES}/distill", json={"engine": ENGINE, "max_cost_usd": 0.5})
    assert (again.status_code, again.json()["id"]) == (200, job["id"])
    other = await api.http.post(f"{EXPERIENCES}/distill", json={"engine": ENGINE})
    assert (other.status_code, "Another job is distilling lessons" in other.text) == (409, True)
    assert (await api.http.get(f"{EXPERIENCES}/preview")).json()["job_id"] == job["id"]
    assert (await api.http.post(f"/api/v1/training-jobs/{job['id']}/cancel")).json()["state"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"engine": {"engine": "guess"}}, "engine"),
        ({"engine": {"engine": "extractive", "prompt_library": "lessons@1"}}, "engine.prompt_library"),
        ({"engine": {"engine": "litellm", "model": "openai/m", "api_base": "http://169.254.1.1"}}, "engine.api_base"),
        ({"max_groups": 0}, "max_groups"),
        ({"max_cost_usd": -1}, "max_cost_usd"),
        ({"gate": {"dataset": "nowhere", "engine": ENGINE, "graph": "quiet", "role": "speaker"}}, "gate.dataset"),
        ({"gate": {"dataset": "held-out", "engine": ENGINE, "graph": "quiet", "role": "nobody"}}, "gate.role"),
        ({"gate": {"dataset": "held-out", "graph": "quiet", "role": "speaker"}}, "gate.engine"),
    ],
)
async def test_what_cannot_be_asked_for_is_rejected_by_name(
    api: Api, collected: Collected, body: dict[str, Any], field: str
) -> None:
    await a_group(collected, 1.0, 0.0)
    rejected = await api.http.post(f"{EXPERIENCES}/distill", json=body)
    assert (rejected.status_code, rejected.json()["field"]) == (422, field)


async def test_a_name_of_weights_or_that_cannot_be_one_is_rejected(api: Api, collected: Collected) -> None:
    await a_group(collected, 1.0, 0.0)
    await policies.register_version(
        api.database,
        api.tenant,
        PolicyRegistration(name="planner", kind="full", uri="/p", hashes=PolicyHashes("s", "t", "p")),
    )
    for verb, path in (("GET", "preview"), ("POST", "distill")):
        body: dict[str, Any] | None = {} if verb == "POST" else None
        assert (await api.http.request(verb, f"/api/v1/prompt-libraries/planner/{path}", json=body)).status_code == 409
        assert (await api.http.request(verb, f"/api/v1/prompt-libraries/..%20/{path}", json=body)).status_code == 422


async def test_a_version_s_text_names_the_runs_behind_it_and_what_it_changed(
    api: Api, collected: Collected, tmp_path: Path
) -> None:
    run, other = await a_group(collected, 1.0, 0.0)
    first = await a_version(api, tmp_path, PromptLibrary())
    await promotion.promote(api.database, api.tenant, first.label)
    library, _ = apply_edits(
        PromptLibrary(), [LibraryEdit(op="add", text="Search <b>first</b>.")], [str(run), str(other), "by hand"]
    )
    case = Case(question="Who?", plan=("search",), outcome="She.", reward=1.0, run_id=str(run))
    second = await a_version(api, tmp_path, library.model_copy(update={"cases": (case,)}), first)
    body = (await api.http.get(f"/api/v1/policy-versions/{second.id}/prompt-library")).json()
    assert (body["policy"], body["previous_version"]) == ("lessons@2", "lessons@1")
    assert body["experiences"] == [
        {"id": "x1", "text": "Search <b>first</b>.", "run_ids": [str(run), str(other)], "groups": 1}
    ]
    assert [(c["kind"], c["before"], c["after"]) for c in body["changes"]] == [("added", "", "Search <b>first</b>.")]
    assert [(c["question"], c["run_id"], c["is_new"]) for c in body["cases"]] == [("Who?", str(run), True)]
    listed = (await api.http.get(f"/api/v1/policy-versions/{second.id}")).json()
    assert listed["lineage"] == {"compared": 1}


async def test_a_library_and_its_outlook_are_their_tenant_s_alone(
    api: Api, collected: Collected, tmp_path: Path
) -> None:
    await a_group(collected, 1.0, 0.0)
    row = await a_version(api, tmp_path, PromptLibrary())
    job = (await api.http.post(f"{EXPERIENCES}/distill", json={})).json()["id"]
    assert (await api.other.get(f"/api/v1/policy-versions/{row.id}/prompt-library")).status_code == 404
    assert (await api.other.get(f"/api/v1/training-jobs/{job}")).status_code == 404
    seen = (await api.other.get(f"{EXPERIENCES}/preview")).json()
    assert (seen["runs"], seen["start_version"], seen["job_id"]) == (0, "", None)
    assert (await api.other.post(f"{EXPERIENCES}/distill", json={})).status_code == 422
    for method, path in (("GET", f"{EXPERIENCES}/preview"), ("POST", f"{EXPERIENCES}/distill")):
        assert (await api.nobody.request(method, path)).status_code == 401
