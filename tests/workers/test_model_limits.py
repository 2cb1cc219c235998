"""Limits of models in real runs: pinned at submission, sent by the worker, and shown in the ledger."""

from pathlib import Path

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.services.runs import RunRequest
from offing.storage import run_summaries
from offing.storage.run_summaries import TokenDetails
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Tokens
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, ROLES, SUPPORTED_REPORT, TEXT, VERDICT, says


async def test_a_writer_cut_off_by_its_thinking_still_writes_the_report(
    shared_platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(shared_platform.database, shared_platform.tenant, tmp_path)
    thought = Completion("", finish="length", reasoning="Hm.", tokens=Tokens(50, 24_000, cached=40, reasoning=24_000))
    replies = says(ANALYSIS), says(PLAN), says(COMMAND), says(VERDICT), thought, says(SUPPORTED_REPORT)
    async with WireServer(scripted(*replies)) as server:
        options = {"output_mode": "text"}
        model = EngineConfig(engine="litellm", model="openai/o3-mini", api_base=server.url, options=options)
        engines = dict.fromkeys(ROLES, model) | {"planner": model.model_copy(update={"reasoning_effort": "low"})}
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=engines)
        ended = await shared_platform.ended((await shared_platform.submit(request)).id)
        limits = [body.get("max_completion_tokens") or body["max_tokens"] for body in server.bodies]
    assert ended.status is RunStatus.DONE
    writer = ended.engines["generator"]
    assert (writer.answer_tokens, writer.thinking_tokens, writer.context_tokens) == (16_384, 8_192, 200_000)
    assert limits[0] == 4_096 + 8_192
    assert limits[1] == 4_096 + 4_096
    assert limits[-2:] == [16_384 + 8_192, 2 * (16_384 + 8_192)]
    assert server.bodies[-1]["messages"] == server.bodies[-2]["messages"]
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        details = await run_summaries.get_token_details(connection, ended.id)
    assert details == TokenDetails(50 + 5 * 11, 24_000 + 5 * 7, 40, 24_000)
