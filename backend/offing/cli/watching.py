"""What `offing dev` says of the folders that it watches: which version runs get now, and what keeps a newer one out."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from offing.services.graphs import LOOK_PAUSE, Catalogue

Say = Callable[[str], None]


class Watch:
    """Remembers what was said."""

    def __init__(self, graphs: Catalogue) -> None:
        self._graphs, self._problem = graphs, ""
        self._versions: dict[str, str] = {}

    def news(self) -> list[str]:
        """What has changed since it was asked last."""
        now = {name: graph.version for name, graph in self._graphs.items() if name in self._graphs.in_folders}
        lines = [f"{name} {v[:12]} is what new runs get" for name, v in now.items() if self._versions.get(name) != v]
        problem, self._versions = self._graphs.problem, now
        if problem and problem != self._problem:
            lines.append(f"{problem} New runs get what loaded last.")
        self._problem = problem
        return lines


@contextmanager
def watching(graphs: Catalogue, say: Say) -> Generator[None]:
    """Say what changes, until the block ends."""
    over, watch = threading.Event(), Watch(graphs)

    def look() -> None:
        while not over.wait(LOOK_PAUSE):
            for line in watch.news():
                say(line)

    thread = threading.Thread(target=look, name="offing-watch-graphs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
