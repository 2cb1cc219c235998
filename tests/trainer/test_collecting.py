"""What a job that collects asks for."""

from datetime import UTC, datetime

from offing.clock import new_id
from offing.services.graphs import installed, named
from offing.storage.policy_versions import VersionRow
from offing_trainer.config import CollectConfig
from offing_trainer.job.collecting import engines_of

PLANNER = VersionRow(
    id=new_id(), name="planner", version=3, parent=None, kind="full", base_model="", uri="/p/3", sha256="w",
    tokenizer_sha256="", template_sha256="", state="candidate", lineage={}, evaluation={},
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
)  # fmt: skip


def test_the_policy_answers_its_role_in_its_form_and_at_most_so_many_tokens() -> None:
    collect = CollectConfig(
        role="planner", form="compact", worlds=("train-1@500",), engines={"all": "rules:world"}, max_tokens=48
    )
    engines = engines_of(named(installed(""), "agentflow"), collect, PLANNER)
    ours = engines.pop("planner")
    assert (ours.engine, ours.model, ours.form, ours.max_tokens) == ("policy", "planner@3", "compact", 48)
    assert {choice.engine for choice in engines.values()} == {"rules"}
