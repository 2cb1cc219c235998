"""What a job that collects asks for."""

from datetime import UTC, datetime

from offing.clock import new_id
from offing.services.graphs import get_graph, open_registry
from offing.storage.policy_versions import PolicyVersionRow
from offing_trainer.config import CollectConfig
from offing_trainer.job.rollout_collector import build_engine_configs

PLANNER = PolicyVersionRow(
    id=new_id(), name="planner", version=3, parent_id=None, kind="full", base_model="", uri="/p/3", sha256="w",
    tokenizer_sha256="", template_sha256="", state="candidate", lineage={}, evaluation={},
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
)  # fmt: skip


def test_the_policy_answers_its_role_in_its_format_within_its_maximum_of_tokens() -> None:
    collect = CollectConfig(
        role="planner", prompt_format="compact", worlds=("train-1@500",), engines={"all": "rules:world"}, max_tokens=48
    )
    engines = build_engine_configs(get_graph(open_registry(""), "agentflow"), collect, PLANNER)
    ours = engines.pop("planner")
    assert (ours.engine, ours.model, ours.prompt_format, ours.max_tokens) == ("policy", "planner@3", "compact", 48)
    assert {choice.engine for choice in engines.values()} == {"rules"}
