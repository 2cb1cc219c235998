"""The graphs on which faults are tried, and two of them with contexts so small that they are edited and summed up."""

from typing import Literal, get_args

from offing_graphs.memact.context import MIN_SUMMARY_TOKENS, ContextConfig
from offing_graphs.memact.graph import configure_graph
from tests.workers.processes import ALL_GRAPHS

GraphName = Literal["agentflow", "iterresearch", "memact", "supo", "hiper"]

GRAPH_NAMES: tuple[GraphName, ...] = get_args(GraphName)

narrow = configure_graph(
    "memact-narrow",
    "Memory as action, narrow",
    "Removes what it has read.",
    ContextConfig(max_context_tokens=3_000, max_observation_tokens=600, allows_edits=True),
)

brief = configure_graph(
    "supo-brief",
    "Summarize when full, brief",
    "Sums up what it has read.",
    ContextConfig(
        max_context_tokens=2_000 + MIN_SUMMARY_TOKENS,
        max_observation_tokens=600,
        allows_edits=False,
        summarize_at_tokens=2_000,
        max_summaries=3,
    ),
)

GRAPHS = f"{ALL_GRAPHS},tests.chaos.graphs:narrow,tests.chaos.graphs:brief"

NAMES: dict[GraphName, str] = {"memact": narrow.name, "supo": brief.name}
"""Of those that are tried under another name."""

CALL_MS: dict[GraphName, int] = {"agentflow": 250, "iterresearch": 700, "memact": 600, "supo": 470, "hiper": 700}
"""What a call takes here, so that runs of all graphs last equally long and one moment is in the middle of each."""
