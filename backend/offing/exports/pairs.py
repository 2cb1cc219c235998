"""Preference pairs as JSON lines.

A pair is a prompt shared by rollouts of one group, with the better and the worse answer. An
answer is a single role call, compared by the reward of its run. The later steps of the run also
influence that reward. What people said about runs can be the preference instead, if they may be learned from: ratings
of runs that share a prompt, and corrected answers to a question.
"""

from collections.abc import Iterable
from typing import Any, BinaryIO

from offing.core.training_signal import TrainingSignal
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
        "preference": p.source.value,
        "role": p.role,
        "group_id": p.group_id and str(p.group_id),
        "chosen_run_id": p.chosen_run_id and str(p.chosen_run_id),
        "rejected_run_id": str(p.rejected_run_id),
        "signals": [_build_signal(one) for one in p.signals],
    }


def _build_signal(signal: TrainingSignal) -> dict[str, Any]:
    """Return where a preference comes from. The words of a correction are the chosen answer."""
    return {
        "kind": signal.kind.value,
        "id": signal.id,
        "run_id": str(signal.run_id),
        "report_version": signal.report_version,
        "value": signal.value,
        "given_by": signal.given_by,
        "text_origin": signal.text_origin.value,
        "created_at": signal.created_at.isoformat(),
    }


FORMAT = Format("pairs", RecordUnit.PREFERENCE, "prompt, chosen, rejected", create_sink)
