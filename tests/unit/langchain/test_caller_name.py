"""Who asked a model, as LangGraph's metadata tell it."""

import pytest

from offing.langchain.caller_name import find_caller_name


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("supervisor:1a|agent:2b", "supervisor"),
        ("research_supervisor:1|supervisor_tools:2|1|researcher:3", "researcher"),
        ("graph:1|model:2", "graph"),
        ("SummarizationMiddleware.before_model:1", "SummarizationMiddleware"),
        ("call_model:1", ""),
        ("tools:1|model:2", ""),
        ("", ""),
    ],
)
def test_the_innermost_node_with_a_name_of_its_own_asked(namespace: str, name: str) -> None:
    assert find_caller_name({"langgraph_checkpoint_ns": namespace}) == name


def test_a_name_that_an_agent_was_given_comes_first() -> None:
    assert find_caller_name({"lc_agent_name": "historian", "langgraph_checkpoint_ns": "tools:1|model:2"}) == "historian"
    assert find_caller_name({"lc_agent_name": None, "langgraph_checkpoint_ns": "judge:1"}) == "judge"


def test_a_call_with_a_config_of_its_own_is_known_by_the_namespace_around_it() -> None:
    assert find_caller_name({"lc_source": "summarization", "checkpoint_ns": "Sum.before_model:1"}) == "Sum"
