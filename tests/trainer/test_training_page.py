"""docs/training.md lists every plug-in and every recipe with its current options."""

import re
import tomllib

from offing_trainer.config import GuardConfig, list_recipes, parse_config
from offing_trainer.pipeline import build_pipeline
from offing_trainer.plugin import PluginKind
from offing_trainer.plugin_registry import PLUGINS
from tests.trainer.training_page import PAGE, written

AGAIN = "write the tables again: .venv/bin/python -m tests.trainer.training_page"


def test_the_tables_of_the_page_are_those_of_the_registry() -> None:
    page = PAGE.read_text("utf-8")
    assert page == written(page), AGAIN


def test_every_plugin_and_every_recipe_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    names = {*(plugin.name for plugin in PLUGINS.values()), *list_recipes()}
    assert sorted(name for name in names if f"`{name}`" not in page) == [], AGAIN


def test_every_job_of_the_page_is_one() -> None:
    matches = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    jobs = [parse_config(tomllib.loads(text)) for text in matches]
    assert {build_pipeline(job.pipeline).get_plugin(PluginKind.SURROGATE).plugin.name for job in jobs} == {"ppo-clip"}


def test_every_guard_is_on_the_page_with_its_default() -> None:
    page = PAGE.read_text("utf-8")
    defaults = {
        name: "none" if field.default is None else field.default for name, field in GuardConfig.model_fields.items()
    }
    assert [name for name, default in defaults.items() if f"| `{name}` | {default} |" not in page] == []
