"""Messages of `offing dev` about watched folders.

They name the version that new runs use, or the reason why a newer one cannot be loaded.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from offing.services.graphs import POLL_SECONDS, GraphRegistry

LinePrinter = Callable[[str], None]


class GraphWatcher:
    """Watcher of graph folders that reports each change once."""

    def __init__(self, graphs: GraphRegistry) -> None:
        self._graphs, self._problem = graphs, ""
        self._versions: dict[str, str] = {}

    def list_changes(self) -> list[str]:
        """Return descriptions of what has changed since the last call."""
        now = {name: graph.version for name, graph in self._graphs.items() if name in self._graphs.folder_graph_names}
        lines = [f"new runs use {name} {v[:12]}" for name, v in now.items() if self._versions.get(name) != v]
        problem, self._versions = self._graphs.problem, now
        if problem and problem != self._problem:
            lines.append(f"{problem} New runs use the last version that loaded.")
        self._problem = problem
        return lines


@contextmanager
def report_changes(graphs: GraphRegistry, say: LinePrinter) -> Generator[None]:
    """Report changes of the graphs until the block ends."""
    stop_event, watcher = threading.Event(), GraphWatcher(graphs)

    def look() -> None:
        while not stop_event.wait(POLL_SECONDS):
            for line in watcher.list_changes():
                say(line)

    thread = threading.Thread(target=look, name="offing-watch-graphs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop_event.set()
        thread.join()
