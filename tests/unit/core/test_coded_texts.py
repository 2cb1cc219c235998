"""Codes of English texts: each text of the platform is found by its template, and what others wrote has none."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from langgraph.types import Interrupt

from offing.core.coded_text import CodedText, TextCatalog, list_parameters
from offing.core.offer_texts import OFFER_TEXTS
from offing.core.problem_texts import PROBLEM_TEXTS
from offing.core.run_texts import RUN_TEXTS
from offing.core.step import Step, StepDraft, StepKind, step_from_draft
from offing.core.step_texts import STEP_DETAILS, STEP_TITLES, find_detail_parts, find_title
from offing.kernel.wait_conditions import PendingWaits
from offing.services.graphs import GRAPHS
from offing.web.provider import SEARCH_ENGINES

BACKEND = Path(__file__).parents[3] / "backend" / "offing"
CATALOGS = [PROBLEM_TEXTS, RUN_TEXTS, OFFER_TEXTS, STEP_TITLES, STEP_DETAILS]
RUN = UUID("019aa6f0-3c1e-7b50-8d1f-2f6a1f6f2a11")

NOT_SHOWN_BY_THE_PAGE = (
    # The command line, and the processes of an installation when they start.
    "api/process.py",
    "cli/",
    "datasets/",
    "exports/",
    "library/folder.py",
    "local/",
    "mcp/pins.py",
    "models/accepted_servers.py",
    "models/embedding_models.py",
    "models/policy_folder.py",
    "registry.py",
    "scorers/",
    "services/canaries.py",
    "services/datasets.py",
    "services/experiment_gate.py",
    "services/experiments.py",
    "services/graph_folders.py",
    "services/graph_offers.py",
    "services/policy_files.py",
    "services/project_http.py",
    "services/promotion.py",
    "services/promotion_gate.py",
    "services/recordings.py",
    "services/rollouts.py",
    "services/run_tasks.py",
    "services/scorer_pins.py",
    "services/task_scopes.py",
    "services/tasks.py",
    "services/tool_backends.py",
    "services/trajectories.py",
    "settings.py",
    "telemetry/",
    # Programs that use an API of their own, or an address that the page builds itself.
    "api/project_users.py",
    "api/streams.py",
    "core/cron_schedule.py",
    "core/langgraph_config_parser.py",
    "core/langgraph_config_reader.py",
    "core/langgraph_http_parser.py",
    "core/metadata_filter.py",
    "core/webhook_rules.py",
    "protocols/",
    "services/langgraph_assistants.py",
    "services/langgraph_auth.py",
    "services/langgraph_crons.py",
    "services/langgraph_graphs.py",
    "services/langgraph_projects.py",
    "services/langgraph_runs.py",
    "services/langgraph_states.py",
    "services/langgraph_threads.py",
    "services/project_objects.py",
    "services/project_webhooks.py",
    # Authors of graphs and tools.
    "kernel/",
    "langchain/",
    "sdk/",
    "testing/",
)
"""Folders and modules whose problems the web UI cannot show. A new sentence anywhere else needs a code and its
translations."""

COMPUTED = frozenset({"Use x x."})
"""Sentences with two values in a row, one of which is words of the sentence. Their templates contain those words."""

PLACES = {"InvalidInput": (1, 2), "Conflict": (0, 1), "ProblemError": (2, 3)}
"""Where the sentences are among the arguments of an error."""


def list_sentences(module: str) -> Iterator[str]:
    """Yield the sentences of errors in a module, with `x` for each value. Texts that are computed elsewhere are not."""
    for node in ast.walk(ast.parse((BACKEND / module).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACES:
            for place in PLACES[node.func.id]:
                if place < len(node.args) and (text := _read_text(node.args[place])) is not None:
                    yield text


def _read_text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and node.value else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
    text = "".join(map(str, parts))
    return text if text.replace("x", "").strip(" .:") else None


def list_modules() -> Iterator[str]:
    """Yield the modules whose problems the web UI can show."""
    for path in sorted(BACKEND.rglob("*.py")):
        module = path.relative_to(BACKEND).as_posix()
        if not module.startswith(NOT_SHOWN_BY_THE_PAGE):
            yield module


def test_each_sentence_of_a_rejected_request_has_a_code() -> None:
    sentences = {text for module in list_modules() for text in list_sentences(module)} - COMPUTED
    without = sorted(text for text in sentences if PROBLEM_TEXTS.find(text) is None)
    assert not without, f"Add these to core/problem_texts.py and shared/texts/problem-texts.ts: {without}"


def test_only_modules_that_exist_are_left_out() -> None:
    assert [module for module in NOT_SHOWN_BY_THE_PAGE if not (BACKEND / module).exists()] == []


@pytest.mark.parametrize("catalog", CATALOGS)
def test_each_template_is_found_by_the_text_that_it_renders(catalog: TextCatalog) -> None:
    for code, template in catalog.templates.items():
        text = catalog.render(code, **{name: f"<{name}>" for name in list_parameters(template)})
        match = catalog.find(text)
        assert match is not None
        assert catalog.render(match.code, **match.parameters) == text


def test_parameters_are_what_the_text_names() -> None:
    assert PROBLEM_TEXTS.find(f"There is no run {RUN}.") == CodedText("no_run", {"id": str(RUN)})


def test_a_text_of_others_has_no_code() -> None:
    assert PROBLEM_TEXTS.find("The tide was late.") is None
    assert RUN_TEXTS.find("ValueError: the archive is closed") is None


def test_a_very_long_text_is_not_compared() -> None:
    assert RUN_TEXTS.find("May the run use " + "x" * 30_000 + "?") is None


@pytest.mark.parametrize("requests", [0, 1, 2])
@pytest.mark.parametrize("children", [0, 1, 3])
def test_what_a_run_waits_for_has_a_code(requests: int, children: int) -> None:
    waits = PendingWaits(
        request_numbers=tuple(range(requests)),
        run_id_groups=((RUN,) * children,) if children else (),
        interrupts=(Interrupt(value="go on?", id="1"),) if requests else (),
    )
    if waits.description:
        match = RUN_TEXTS.find(waits.description)
        assert match is not None
        assert match.code.startswith("wait_")


def test_each_graph_of_this_code_base_is_described_by_a_code() -> None:
    graphs = [GRAPHS[name] for name in ("agentflow", "hiper", "iterresearch", "memact", "supo", "router")]
    graphs += [GRAPHS["research_team"], GRAPHS["research_team_reviewed"]]
    assert [graph.name for graph in graphs if OFFER_TEXTS.find(graph.description) is None] == []


def test_each_search_engine_of_this_code_base_is_described_by_codes() -> None:
    for name in SEARCH_ENGINES:
        engine = SEARCH_ENGINES[name]
        assert all(OFFER_TEXTS.find(text) for text in (engine.covers, engine.cost)), name


def a_step(kind: StepKind, title: str, detail: str = "") -> Step:
    return step_from_draft(StepDraft(kind, title, detail=detail), 1, datetime(2026, 3, 1, tzinfo=UTC), 1)


def test_the_details_of_a_tool_result_have_codes_when_its_payload_is_left_out() -> None:
    step = a_step(StepKind.TOOL_RESULT, "tides", "3 passages from 2 sources · from example.org · call 1 of 4 at once")
    assert [part.code for part in find_detail_parts(step)] == ["passages_of_sources", "from_origin", "call_of_batch"]


def test_the_words_of_a_model_stay_beside_what_the_platform_says() -> None:
    parts = find_detail_parts(a_step(StepKind.ROLE_CALL, "Tides", "the harbour · 4 passages not shown"))
    assert [(part.code, dict(part.parameters)) for part in parts] == [
        ("text", {"text": "the harbour"}),
        ("passages_omitted", {"count": "4"}),
    ]


def test_what_a_person_wrote_is_never_taken_for_a_text_of_the_platform() -> None:
    step = a_step(StepKind.USER_MESSAGE, "Answer: the tide", "nothing found")
    assert find_title(step) is None
    assert find_detail_parts(step) == ()


def test_each_value_is_as_short_as_possible_and_never_empty() -> None:
    catalog = TextCatalog({"became": "{one} became {other}.", "fixed": "Nothing."})
    coded = catalog.find("a became b became c.")
    assert coded is not None
    assert coded.parameters == {"one": "a", "other": "b became c"}
    assert catalog.find("  became b.") is not None, "a space is a value"
    for text in (" became b.", "a became .", "a became b", "Nothing", "a became " * 2_000):
        assert catalog.find(text) is None
