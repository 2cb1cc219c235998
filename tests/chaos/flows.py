"""The flows on which faults are tried, and two of them with contexts so small that they are edited and summed up."""

from typing import Literal, get_args

from offing_graphs.memact.config import TOKENS_FOR_A_SUMMARY, Config
from offing_graphs.memact.graph import configured
from tests.workers.processes import ALL_GRAPHS

Flow = Literal["agentflow", "iterresearch", "memact", "supo", "hiper"]

FLOWS: tuple[Flow, ...] = get_args(Flow)

narrow = configured(
    "memact-narrow",
    "Memory as action, narrow",
    "Removes what it has read.",
    Config(window=3_000, observation=600, edits=True),
)

brief = configured(
    "supo-brief",
    "Summarise when full, brief",
    "Sums up what it has read.",
    Config(window=2_000 + TOKENS_FOR_A_SUMMARY, observation=600, edits=False, full=2_000, summaries=3),
)

GRAPHS = f"{ALL_GRAPHS},tests.chaos.flows:narrow,tests.chaos.flows:brief"

NAMES: dict[Flow, str] = {"memact": narrow.name, "supo": brief.name}
"""Of those that are tried under another name."""

CALL_MS: dict[Flow, int] = {"agentflow": 250, "iterresearch": 700, "memact": 600, "supo": 470, "hiper": 700}
"""What a call takes here, so that runs of all flows last equally long and one moment is in the middle of each."""
