"""DeepResearch Bench (Du et al. 2025): research questions of experts, whose reports are judged by criteria.

The path is the folder of the benchmark, with `data/prompt_data/query.jsonl` and `data/criteria_data/criteria.jsonl`,
or its folder `data`. Each criterion becomes one of the rubric; its weight is that of its dimension multiplied by its
own. The questions have no accepted answers and no documents. The benchmark itself compares a report with a
reference report; the scorer `report_rubric` judges it alone, so its values are not those of the benchmark's
leaderboard. All fields were read from the published files.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.scoring import Criterion
from offing.datasets.dataset_format import DatasetFormat, PublishedQuestion
from offing.datasets.records import get_file, iter_records


class QueryRecord(BaseModel, frozen=True):
    id: int
    prompt: str
    topic: str = ""
    language: str = ""


class WeightedCriterion(BaseModel, frozen=True):
    criterion: str
    explanation: str = ""
    weight: float


class CriteriaRecord(BaseModel, frozen=True):
    id: int
    dimension_weight: dict[str, float]
    criterions: dict[str, list[WeightedCriterion]]


def read_deep_research_bench(path: Path) -> Iterator[PublishedQuestion]:
    """Read the questions with their criteria."""
    queries = get_file(path, "data/prompt_data/query.jsonl", "prompt_data/query.jsonl")
    criteria = get_file(queries.parents[1] / "criteria_data", "criteria.jsonl")
    rubrics = {one.id: _build_rubric(one, location) for location, one in iter_records(criteria, CriteriaRecord)}
    for location, query in iter_records(queries, QueryRecord):
        if query.id not in rubrics:
            raise InvalidInput(f"{location}.id", f"{criteria.name} has no criteria of {query.id}", "Complete the file.")
        tags = tuple(tag for tag in (query.topic, query.language) if tag)
        yield PublishedQuestion(location, str(query.id), query.prompt, None, rubric=rubrics[query.id], tags=tags)


def _build_rubric(record: CriteriaRecord, location: str) -> tuple[Criterion, ...]:
    for dimension in record.criterions:
        if dimension not in record.dimension_weight:
            field = f"{location}.dimension_weight"
            raise InvalidInput(field, f"the dimension {dimension} has no weight", "Complete the file.")
    return tuple(
        Criterion(_describe(one), record.dimension_weight[dimension] * one.weight)
        for dimension, criteria in record.criterions.items()
        for one in criteria
    )


def _describe(criterion: WeightedCriterion) -> str:
    return f"{criterion.criterion}: {criterion.explanation}" if criterion.explanation else criterion.criterion


FORMAT = DatasetFormat(
    "deep_research_bench",
    "Research questions with weighted criteria for their reports: the folder of the benchmark",
    read_deep_research_bench,
    license="Apache-2.0",
    source="DeepResearch Bench, queries and criteria",
    citation="Du et al. 2025: DeepResearch Bench: A Comprehensive Benchmark for Deep Research Agents. "
    "arXiv:2506.11763.",
)
