"""A report style is asked only of graphs that can follow it."""

import pytest

from offing.core.errors import InvalidInput
from offing.core.report_style import ReportLength, ReportStyle
from offing.services.graphs import open_registry
from offing.services.runs import check_report_style
from tests.graphs.langgraph_only import react


def test_a_graph_without_a_writer_rejects_a_report_style() -> None:
    with pytest.raises(InvalidInput, match=r"report_style.*written for LangGraph alone"):
        check_report_style(react.graph, ReportStyle(length=ReportLength.LONG))
    for style in (None, ReportStyle()):
        check_report_style(react.graph, style)
    check_report_style(open_registry()["agentflow"], ReportStyle(language="zh"))
