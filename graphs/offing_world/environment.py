"""The environment `world`: its tools, tasks, rule-based roles and compact prompt formats."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from offing.sdk import compute_content_hash
from offing.tools.environment import Environment, RoleExtension, TaskSample
from offing_graphs.agentflow.schemas import AnalystInput, ExecutorInput, PlannerInput, VerifierInput
from offing_graphs.hiper import schemas as hiper_schemas
from offing_graphs.iterresearch.schemas import Workspace
from offing_graphs.memact import schemas as memact_schemas
from offing_graphs.router.schemas import RouterInput
from offing_graphs.shared.schemas import WriterInput
from offing_world import router, tasks
from offing_world.agentflow import compact_format as agentflow_format
from offing_world.agentflow import compact_report as agentflow_report
from offing_world.agentflow import rule_roles as agentflow
from offing_world.compact_notation import VOCABULARY
from offing_world.hiper import compact_format as hiper_format
from offing_world.hiper import compact_report as hiper_report
from offing_world.hiper import rule_roles as hiper
from offing_world.iterresearch import compact_format as iterresearch_format
from offing_world.iterresearch import compact_report as iterresearch_report
from offing_world.iterresearch import rule_roles as iterresearch
from offing_world.memact import compact_format as memact_format
from offing_world.memact import compact_report as memact_report
from offing_world.memact import rule_roles as memact
from offing_world.tools import WORLD_TOOLS

ROLES: tuple[RoleExtension[Any, Any], ...] = (
    RoleExtension(AnalystInput, {"world": agentflow.analyze_question}),
    RoleExtension(PlannerInput, agentflow.PLANNER_RULES, (agentflow_format.COMPACT_FORMAT,)),
    RoleExtension(ExecutorInput, {"world": agentflow.build_tool_call}),
    RoleExtension(VerifierInput, {"world": agentflow.verify_coverage}),
    RoleExtension(WriterInput, {"world": agentflow.write_report}, (agentflow_report.COMPACT_FORMAT,)),
    RoleExtension(RouterInput, {"world": router.estimate_by_rule}),
    RoleExtension(
        hiper_schemas.AgentInput, hiper.AGENT_RULES, (hiper_format.COMPACT_FORMAT, hiper_report.COMPACT_REPORT_FORMAT)
    ),
    RoleExtension(
        Workspace,
        iterresearch.RULES_BY_NAME,
        (iterresearch_format.COMPACT_FORMAT, iterresearch_report.COMPACT_REPORT_FORMAT),
    ),
    RoleExtension(
        memact_schemas.AgentInput,
        memact.RULES_BY_NAME,
        (memact_format.COMPACT_FORMAT, memact_report.COMPACT_REPORT_FORMAT),
    ),
)


def generate_tasks(sample: TaskSample) -> Iterator[Mapping[str, Any]]:
    """Generate tasks of a world as JSON objects. Raises InvalidInput."""
    generated = tasks.generate_tasks(
        sample.spec,
        count=sample.count,
        hops=sample.hops,
        kinds=sample.kinds,
        seed=sample.seed,
        compositions=sample.compositions,
    )
    return (task.as_json() for task in generated)


ENVIRONMENT = Environment(
    "world",
    WORLD_TOOLS,
    generate_tasks,
    ROLES,
    compute_content_hash(Path(__file__).parent),
    VOCABULARY,
)
