"""What a person who edits a graph is told."""

from pathlib import Path

from offing.cli.watching import Watch, watching
from tests.unit.services.test_graph_folders import catalogue, written


def test_each_version_and_each_fault_is_told_once(tmp_path: Path) -> None:
    graphs = catalogue(written(tmp_path / "a"), tmp_path / "home", reloads=True)
    watch, first = Watch(graphs), graphs["harbour"].version
    assert watch.news() == [f"harbour {first[:12]} is what new runs get"]
    assert watch.news() == []
    (tmp_path / "a/harbour/words.py").write_text("word = \n")
    (broken,) = watch.news()
    assert f"{tmp_path / 'a/harbour/words.py'}:1: SyntaxError" in broken
    assert broken.endswith("New runs get what loaded last.")
    assert watch.news() == []
    written(tmp_path / "a", "second")
    assert watch.news() == [f"harbour {graphs['harbour'].version[:12]} is what new runs get"]
    assert graphs["harbour"].version != first


def test_it_is_watched_as_long_as_the_block_lasts(tmp_path: Path) -> None:
    said: list[str] = []
    with watching(catalogue(written(tmp_path / "a"), tmp_path / "home", reloads=True), said.append):
        pass
    assert said == []
