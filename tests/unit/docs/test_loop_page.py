"""The configurations of docs/learning-from-ratings.md are valid, with and without a judge."""

import re
import tomllib
from typing import Any

from offing.services.scorer_pins import build_scorers
from offing_trainer.config import merge_tables, parse_config
from offing_trainer.loop_config import parse_loop_config
from tests.unit.docs.documents import ROOT

PAGE = ROOT / "docs/learning-from-ratings.md"


def read_tables() -> list[dict[str, Any]]:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [tomllib.loads(block) for block in blocks]


def test_the_loop_of_the_page_trains_on_tasks_of_rated_runs_and_decides_by_others() -> None:
    tables, _ = read_tables()
    config = parse_loop_config(tables)
    assert (config.collect.dataset, config.evaluate.dataset) == ("ours", "ours-held-out")
    assert [guard.metric for guard in config.evaluate.guards()] == ["tokens"]
    job = parse_config({**config.train, "policy": "searcher@1", "name": config.name})
    assert job.max_steps == 4


def test_the_judge_of_the_page_has_a_budget_and_does_not_decide() -> None:
    tables, judge_tables = read_tables()
    config = parse_loop_config(merge_tables(tables, {"collect": {}, "evaluate": judge_tables["evaluate"]}))
    collect = parse_loop_config(tables | {"collect": tables["collect"] | judge_tables["collect"]}).collect
    assert {pin.name for pin in build_scorers(collect.scorers) or ()} == {"token_f1", "rubric_judge"}
    assert collect.judge_budget is not None
    assert set(config.evaluation_scorers) == {"token_f1"}
