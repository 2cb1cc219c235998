"""Fields of outputs whose values are one of few: tools and sub-questions."""

from collections.abc import Iterable

from offing.sdk import OutputChoice
from offing_graphs.shared.schemas import Analysis, ToolCard


def choose_tool(path: str, tools: Iterable[ToolCard], *more: str) -> OutputChoice:
    """Return the choice among tools and further names for the field at `path`."""
    return OutputChoice(path, (*(tool.name for tool in tools), *more))


def choose_sub_question(analysis: Analysis) -> OutputChoice:
    """Return the choice among the sub-questions of an analysis. Other words for one of them are accepted, too."""
    return OutputChoice("coverage.*.sub_question", analysis.sub_questions, is_required=False)
