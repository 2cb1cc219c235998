"""docs/training.md lists every plug-in and every recipe, as they are."""

import re
import tomllib

from offing_trainer.catalogue import built_in
from offing_trainer.chain import chain_of
from offing_trainer.config import config_of, recipe_names
from offing_trainer.seam import Seam
from tests.trainer.training_page import PAGE, written

AGAIN = "write the tables again: .venv/bin/python -m tests.trainer.training_page"


def test_the_tables_of_the_page_are_those_of_the_catalogue() -> None:
    page = PAGE.read_text("utf-8")
    assert page == written(page), AGAIN


def test_every_plugin_and_every_recipe_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    names = {*(plugin.name for plugin in built_in()), *recipe_names()}
    assert sorted(name for name in names if f"`{name}`" not in page) == [], AGAIN


def test_every_job_of_the_page_is_one() -> None:
    shown = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    jobs = [config_of(tomllib.loads(text)) for text in shown]
    assert {chain_of(job.chain).only(Seam.SURROGATE).plugin.name for job in jobs} == {"ppo-clip"}
