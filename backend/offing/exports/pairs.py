"""Preferences as JSON lines: a prompt that answers of one group share, the better answer and the worse.

Answers are single decisions, judged by what their runs led to; what followed is the environment's as much as theirs.
"""

from collections.abc import Iterable
from typing import Any, BinaryIO

from offing.core.episode import Preference
from offing.exports.chat import message_list
from offing.exports.format import Options, Sink
from offing.exports.lines import Lines


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return Lines(file, _documents)


def _documents(preference: Preference) -> Iterable[dict[str, Any]]:
    p = preference
    yield {
        "prompt": message_list(p.messages),
        "chosen": [{"role": "assistant", "content": p.chosen}],
        "rejected": [{"role": "assistant", "content": p.rejected}],
        "chosen_reward": p.chosen_reward,
        "rejected_reward": p.rejected_reward,
        "role": p.role,
        "group_id": str(p.group),
        "chosen_run_id": str(p.chosen_run),
        "rejected_run_id": str(p.rejected_run),
    }
