"""What packages register is found by name, and what is wrong with it is said."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offing import registry
from offing.cli.command import COMMANDS
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.datasets.dataset_format import DATASET_FORMATS
from offing.exports.format import FORMATS
from offing.models.engine import ENGINES, create_engine
from offing.registry import Group, MissingPackageError, Registration, add_folder
from offing.scorers import SCORERS
from offing.services.graphs import GRAPHS
from offing.tools.environment import ENVIRONMENTS
from offing.tools.platform_tool import TOOLS
from offing.web.provider import SEARCH_ENGINES
from offing_trainer.plugin_registry import PLUGINS
from tests.installed import install

REGISTRIES = (
    GRAPHS,
    TOOLS,
    ENGINES,
    SCORERS,
    SEARCH_ENGINES,
    FORMATS,
    DATASET_FORMATS,
    ENVIRONMENTS,
    COMMANDS,
    PLUGINS,
)


@pytest.fixture(autouse=True)
def _no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_folders", {})


def iter_built_in() -> Iterator[tuple[str, str]]:
    for one in REGISTRIES:
        yield from ((one.group, name) for name in one)


def test_every_group_has_one_registry() -> None:
    assert sorted(one.group for one in REGISTRIES) == sorted(Group)


@pytest.mark.parametrize("one", REGISTRIES, ids=lambda one: one.group)
def test_everything_built_in_can_be_loaded_and_has_the_name_of_its_entry_point(one: registry.Registry[object]) -> None:
    assert len(one) == len(list(one.values())) > 0


def test_names_are_read_without_an_import() -> None:
    code = (
        "import sys\n"
        "from offing.exports.format import FORMATS\n"
        "from offing.models.engine import ENGINES\n"
        "from offing.scorers import SCORERS\n"
        "assert 'parquet' in FORMATS and 'litellm' in ENGINES and 'rubric_judge' in SCORERS and 'no' not in SCORERS\n"
        "print([name for name in ('pyarrow', 'numpy', 'litellm', 'torch', 'offing.models.litellm_engine',"
        " 'offing.scorers.rubric_judge', 'offing.exports.parquet') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"


def test_installed_packages_are_read_once_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    known = list(SCORERS)
    monkeypatch.setattr("importlib.metadata.entry_points", pytest.fail)
    assert list(SCORERS) == known


def test_a_name_that_two_packages_register_belongs_to_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points = {"offing.scorers": {"exact_match": "acme_scorer:SCORER"}}
    install(tmp_path, monkeypatch, "acme", entry_points, {"acme_scorer": "SCORER = 1"})
    with pytest.raises(InvalidInput) as error:
        SCORERS["exact_match"]
    assert error.value.field == "offing.scorers"
    assert "acme 1.0 (acme_scorer:SCORER)" in error.value.problem
    assert "offing 0.1.0 (offing.scorers.exact_match:SCORER)" in error.value.problem
    assert error.value.remedy.startswith("Rename one of them")
    assert SCORERS["numeric"].name == "numeric"


@pytest.mark.parametrize(
    ("group", "target", "problem", "remedy"),
    [
        ("offing.scorers", "acme_it:number", "a value of type int, not a scorer", "find_missing"),
        ("offing.scorers", "acme_it:Scorer", "the class Scorer, not a scorer", "Register an instance"),
        ("offing.graphs", "acme_it:number", ", not a graph", "offing.sdk.Graph"),
        ("offing.tools", "acme_it:number", ", not a tool", "offing.sdk.tool"),
        ("offing.engines", "acme_it:number", ", not an engine", "environment variables"),
        ("offing.search_engines", "acme_it:number", ", not a search engine", "SearchEngine"),
        ("offing.export_formats", "acme_it:number", ", not an export format", "Format"),
        ("offing.dataset_formats", "acme_it:number", ", not a dataset format", "DatasetFormat"),
        ("offing.environments", "acme_it:number", ", not an environment", "Environment"),
        ("offing.commands", "acme_it:number", ", not a command", "Command"),
        ("offing.training", "acme_it:number", ", not a plug-in", "Plugin"),
        ("offing.training", "offing_trainer.rewards.outcome:PLUGIN", "has the name 'reward.outcome'", "the same name"),
        ("offing.scorers", "acme_nowhere:SCORER", "refers to the module acme_nowhere, which does not exist", "Correct"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_with_its_entry_point_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, target: str, problem: str, remedy: str
) -> None:
    code = (
        "number = 1\n"
        "class Scorer:\n"
        "    name = version = needs_engine = reads_report = reads_tool_results = ''\n"
        "    find_missing = check_options = score = ''\n"
    )
    install(tmp_path, monkeypatch, "acme", {group: {"it": target}}, {"acme_it": code})
    (one,) = (one for one in REGISTRIES if one.group == group)
    assert "it" in one
    with pytest.raises(InvalidInput) as error:
        one["it"]
    assert "'it' of acme 1.0" in error.value.problem
    assert problem in error.value.problem
    assert remedy in error.value.remedy


def test_a_package_that_is_missing_is_told_with_the_extra_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_points = {"offing.export_formats": {"x": "acme_x:FORMAT"}, "offing.engines": {"x": "acme_x:create"}}
    requires = 'Requires-Dist: nobody_has_this>=1; extra == "files"\n'
    install(tmp_path, monkeypatch, "acme", entry_points, {"acme_x": "import nobody_has_this"}, requires)
    with pytest.raises(MissingPackageError, match=r"needs the package nobody_has_this.*pip install 'acme\[files\]'"):
        FORMATS["x"]
    assert "x" not in {one.name for one in FORMATS.iter_usable()}
    failure = create_engine(EngineConfig(engine="x"))
    assert isinstance(failure, EngineFailure)
    assert failure.kind is FailureKind.UNKNOWN_ENGINE
    assert "nobody_has_this" in failure.message


def test_an_error_of_the_code_itself_says_what_was_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "acme", {"offing.scorers": {"x": "acme_x:S"}}, {"acme_x": "1 / 0"})
    with pytest.raises(ZeroDivisionError) as error:
        SCORERS["x"]
    assert error.value.__notes__ == ["This happened while acme_x:S was imported for acme 1.0 (offing.scorers)."]


def test_a_folder_takes_no_name_that_a_package_or_another_folder_has() -> None:
    installed = set(SCORERS)

    def offer(folder: str, name: str) -> None:
        one = Registration(name, "x:y", f"the folder {folder}", lambda: SCORERS["numeric"])
        add_folder(folder, {Group.SCORERS: [one]})

    offer("/a", "theirs")
    for folder, name, owner in (("/b", "theirs", "the folder /a"), ("/b", "numeric", "offing 0.1.0")):
        with pytest.raises(InvalidInput, match=f"registered twice, by {owner} and the folder /b"):
            offer(folder, name)
    assert SCORERS["numeric"].name == "numeric"
    offer("/a", "later")
    assert {"later"} == set(SCORERS) - installed
