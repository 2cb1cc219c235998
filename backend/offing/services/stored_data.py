"""What the installation keeps, for how long, and how much space it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offing.settings import Settings
from offing.storage import installation
from offing.storage.installation import TableSize
from offing.storage.pool import Database

TABLES_BY_KIND: Mapping[str, str] = {
    "runs": "thread run step intent input_request child_run run_tag run_search run_search_queue ended_run_usage "
    "reservation",
    "reports": "report citation",
    "checkpoints": "checkpoint checkpoint_write checkpoint_value",
    "role_calls": "text_part segment role_call completion_span",
    "run_files": "run_file",
    "store_items": "store_item",
    "documents": "snapshot extracted_text source source_history passage",
    "search_index": "posting posting_bucket index_counter index_segment text_vector embedding_model",
    "training": "task task_reference rollout_batch rollout_group rollout reward policy_version prompt_library "
    "training_job training_metric plugin_state training_event ledger evaluation evaluation_result experiment "
    "experiment_task experiment_configuration experiment_result experiment_judgment",
}
KIND_BY_TABLE = {table: kind for kind, tables in TABLES_BY_KIND.items() for table in tables.split()}
"""Kinds of data by table. Tables that are not named are of the kind `other`."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long a kind of data is kept."""

    kind: str
    variable: str | None
    """Environment variable that changes it. `None` means that no setting does."""
    value: float | None
    """Days, or a number of items or checkpoints. `None` means no limit."""


@dataclass(frozen=True, slots=True)
class KindSize:
    kind: str
    size_bytes: int
    row_estimate: int


def list_retention_rules(settings: Settings) -> Sequence[RetentionRule]:
    """Return what is kept for how long with these settings."""
    return [
        RetentionRule("runs", None, None),
        RetentionRule("documents", None, None),
        RetentionRule("checkpoints", "OFFING_KEEP_CHECKPOINTS_DAYS", settings.keep_checkpoints_days),
        RetentionRule("running_checkpoints", "OFFING_KEEP_RUNNING_CHECKPOINTS", settings.keep_running_checkpoints),
        RetentionRule("run_files", "OFFING_KEEP_RUN_FILES_DAYS", settings.keep_run_files_days),
        RetentionRule("store_items", "OFFING_MAX_STORE_ITEMS", settings.max_store_items),
    ]


async def measure_database(database: Database) -> tuple[int, Sequence[KindSize]]:
    """Return the size of the database in bytes, and the sizes of its kinds of data, largest first."""
    total = await installation.get_database_size(database)
    return total, group_by_kind(await installation.list_table_sizes(database))


def group_by_kind(tables: Sequence[TableSize]) -> Sequence[KindSize]:
    sizes: dict[str, KindSize] = {}
    for table in tables:
        kind = KIND_BY_TABLE.get(table.table, "other")
        before = sizes.get(kind, KindSize(kind, 0, 0))
        sizes[kind] = KindSize(kind, before.size_bytes + table.size_bytes, before.row_estimate + table.row_estimate)
    return sorted(sizes.values(), key=lambda one: (-one.size_bytes, one.kind))
