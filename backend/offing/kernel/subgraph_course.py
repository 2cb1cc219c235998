"""When subgraphs start and end, for the stream mode `lifecycle` of LangGraph's clients."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from offing.kernel.langgraph_invocation import Namespace


@dataclass(slots=True)
class SubgraphTracker:
    """Finds the starts and ends of subgraphs in the tasks that a graph streams.

    A subgraph starts with its first task, and ends with the task of its parent that called it.
    """

    _open: dict[Namespace, str] = field(default_factory=dict[Namespace, str])
    """The subgraphs that have not ended, and the tasks that called them."""
    _tool_calls: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the tool calls that tasks execute, by task."""

    def track(self, namespace: Namespace, task: Mapping[str, Any]) -> Iterator[tuple[Namespace, dict[str, Any]]]:
        """Return the namespaces of subgraphs that start or end with a streamed task, and the data of the events."""
        if "result" in task:
            for ended in [one for one, id in self._open.items() if one[:-1] == namespace and id == task["id"]]:
                yield ended, self._describe(ended, _find_end(task))
                del self._open[ended]
            return
        if call := _find_tool_call(task.get("input")):
            self._tool_calls[task["id"]] = call
        caller = namespace[-1].partition(":")[2] if namespace else ""
        if caller and namespace not in self._open:
            self._open[namespace] = caller
            yield namespace, self._describe(namespace, {"event": "started"})

    def _describe(self, namespace: Namespace, end: Mapping[str, Any]) -> dict[str, Any]:
        call = self._tool_calls.get(self._open[namespace])
        return {**end, "namespace": list(namespace), **({"tool_call_id": call} if call else {})}


def _find_end(result: Mapping[str, Any]) -> dict[str, Any]:
    if result.get("interrupts"):
        return {"event": "interrupted"}
    error = result.get("error")
    if error is None:
        return {"event": "completed"}
    kind = type(error).__name__ if isinstance(error, BaseException) else "Error"
    return {"event": "failed", "error": {"error": kind, "message": str(error)}}


def _find_tool_call(task_input: Any) -> str:
    """Return the id of the tool call that is the input of a task. Empty means that it is none."""
    if isinstance(task_input, Sequence) and len(cast(Sequence[Any], task_input)) == 1:
        task_input = cast(Sequence[Any], task_input)[0]
    if not isinstance(task_input, Mapping):
        return ""
    fields = cast(Mapping[str, Any], task_input)
    call: Any = fields.get("tool_call", fields)
    return str(cast(Mapping[str, Any], call).get("id") or "") if isinstance(call, Mapping) and "args" in call else ""
