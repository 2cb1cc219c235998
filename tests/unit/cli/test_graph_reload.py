"""What a person who edits a graph is told."""

from pathlib import Path

from offing.cli.graph_reload import GraphWatcher, report_changes
from tests.unit.services.test_graph_folders import load_registry, written


def test_each_version_and_each_fault_is_told_once(tmp_path: Path) -> None:
    graphs = load_registry(written(tmp_path / "a"), tmp_path / "home", reloads=True)
    watch, first = GraphWatcher(graphs), graphs["harbour"].version
    assert watch.list_changes() == [f"new runs use harbour {first[:12]}"]
    assert watch.list_changes() == []
    (tmp_path / "a/harbour/words.py").write_text("word = \n")
    (broken,) = watch.list_changes()
    assert f"{tmp_path / 'a/harbour/words.py'}:1: SyntaxError" in broken
    assert broken.endswith("New runs use the last version that loaded.")
    assert watch.list_changes() == []
    written(tmp_path / "a", "second")
    assert watch.list_changes() == [f"new runs use harbour {graphs['harbour'].version[:12]}"]
    assert graphs["harbour"].version != first


def test_it_is_watched_as_long_as_the_block_lasts(tmp_path: Path) -> None:
    messages: list[str] = []
    with report_changes(load_registry(written(tmp_path / "a"), tmp_path / "home", reloads=True), messages.append):
        pass
    assert messages == []
