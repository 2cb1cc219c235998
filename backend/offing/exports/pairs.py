"""Preference pairs as JSON lines.

A pair is a prompt shared by rollouts of one group, with the better and the worse answer. An
answer is a single role call, compared by the reward of its run. The later steps of the run also
influence that reward.
"""

from collections.abc import Iterable
from typing import Any, BinaryIO

from offing.core.trajectory_records import PreferencePair
from offing.exports.chat import build_message_list
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.json_lines import JsonLinesSink


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return JsonLinesSink(file, _build_documents)


def _build_documents(preference: PreferencePair) -> Iterable[dict[str, Any]]:
    p = preference
    yield {
        "prompt": build_message_list(p.messages),
        "chosen": [{"role": "assistant", "content": p.chosen}],
        "rejected": [{"role": "assistant", "content": p.rejected}],
        "chosen_reward": p.chosen_reward,
        "rejected_reward": p.rejected_reward,
        "role": p.role,
        "group_id": str(p.group_id),
        "chosen_run_id": str(p.chosen_run_id),
        "rejected_run_id": str(p.rejected_run_id),
    }


FORMAT = Format("pairs", RecordUnit.PREFERENCE, "prompt, chosen, rejected", create_sink)
