"""Sources in prompts and answers: their short ids, and what an answer names in place of a passage."""

from dataclasses import replace
from uuid import UUID

from offing.core.tool import SourceSpan
from offing.sdk import Evidence
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.prompt_parts import render_passage
from offing_graphs.shared.source_names import name_passages, shorten_source_ids

POOL, AGENT = UUID(int=1), UUID(int=2)


def evidence(id: str, source: UUID, label: str, text: str = "A pool keeps sockets open.") -> Evidence:
    return Evidence(id, SourceSpan(UUID(int=9), 0, len(text)), text, source, "Guide", source_label=label)


PASSAGES = passages_from_evidence([evidence("E1", POOL, "S1"), evidence("E2", AGENT, "S2", "An agent keeps pools.")])


def test_a_prompt_names_a_source_by_its_short_id() -> None:
    assert render_passage(PASSAGES[1]).startswith("Passage E2 (source S2, 0 to 21)\n")
    assert str(AGENT) not in render_passage(PASSAGES[1])


def test_a_passage_without_a_short_id_names_its_source_by_the_id() -> None:
    (unlabeled,) = passages_from_evidence([evidence("E1", POOL, "")])
    assert f"(source {POOL}, " in render_passage(unlabeled)


def test_short_ids_are_not_recorded() -> None:
    (unlabeled,) = passages_from_evidence([evidence("E1", POOL, "")])
    assert PASSAGES[0].model_dump() == unlabeled.model_dump()


def test_an_answer_that_cites_a_source_by_its_short_id_cites_its_only_passage() -> None:
    assert name_passages('It keeps pools. [S2: "agent keeps"]', PASSAGES) == 'It keeps pools. [E2: "agent keeps"]'
    assert name_passages("It keeps pools. [S3] [E1]", PASSAGES) == "It keeps pools. [S3] [E1]"


def test_arguments_that_name_a_source_by_its_id_are_shown_with_the_short_one() -> None:
    assert shorten_source_ids(f'read_source {{"source": "{AGENT}"}}', PASSAGES) == 'read_source {"source": "S2"}'


def test_a_prompt_names_the_date_of_a_document_beside_its_passage_and_no_record_does() -> None:
    (dated,) = passages_from_evidence([replace(evidence("E2", AGENT, "S2"), published="2024-03")])
    assert render_passage(dated).startswith("Passage E2 (source S2, 0 to 26, dated 2024-03)\n")
    assert "published" not in dated.model_dump()
