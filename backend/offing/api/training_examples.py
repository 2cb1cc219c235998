"""Example values of the schemas of training, for the OpenAPI document."""

from offing.api.example_values import EXTRACTIVE_ENGINE_EXAMPLE, RUN_ID, SNAPSHOT_SHA256, TIMESTAMP, Example
from offing.api.schemas import promotion, prompt_libraries, training_jobs, trajectories

SIGNAL_EXAMPLE: Example = {
    "kind": "answer_correction",
    "id": "01980000-0000-7000-8000-00000000000d",
    "given_by": "Ada",
    "created_at": "2026-07-01T09:30:00Z",
    "report_version": 1,
    "sentence_id": None,
    "value": None,
    "text": "Robert Stevenson",
    "text_origin": "person",
    "base_version": None,
}

CONSENT_EXAMPLE: Example = {
    "may_learn": False,
    "is_decided": True,
    "decided_by": "Ada",
    "decided_at": "2026-07-01T09:31:00Z",
}

TASK_ID = "01980000-0000-7000-8000-00000000000f"
BATCH_ID = "01980000-0000-7000-8000-000000000010"
GROUP_ID = "01980000-0000-7000-8000-000000000011"
POLICY_VERSION_ID = "01980000-0000-7000-8000-000000000012"
TASK_EXAMPLE: Example = {
    "id": TASK_ID,
    "dataset": "capitals",
    "split": "train",
    "name": "capitals/7",
    "question": "What is the capital of Australia?",
    "scope": {"collections": ["atlas"]},
    "difficulty": 0.2,
    "tags": ["1 hop"],
    "created_at": TIMESTAMP,
}

SCORER_EXAMPLE: Example = {"name": "exact_match", "weight": 1, "options": {}}

BATCH_EXAMPLE: Example = {
    "id": BATCH_ID,
    "name": "first",
    "graph": "agentflow",
    "group_size": 8,
    "seed": 0,
    "tags": ["pilot"],
    "scorers": [SCORER_EXAMPLE],
    "progress": {
        "groups": 200,
        "created_groups": 200,
        "open": 120,
        "complete": 79,
        "incomplete": 1,
        "rollouts": 1603,
        "waiting": 900,
        "running": 60,
        "unfinalized": 2,
        "finalized": 641,
        "failed": 3,
        "mean_reward": 0.41,
    },
    "created_at": TIMESTAMP,
    "pins": {},
    "judges": {"max_calls": None, "max_cost_usd": None, "calls": 0, "cost_usd": "0"},
    "stop_reason": "",
    "cancelled_at": None,
}

GROUP_EXAMPLE: Example = {
    "id": GROUP_ID,
    "batch_id": BATCH_ID,
    "task_id": TASK_ID,
    "question": "What is the capital of Australia?",
    "graph": "agentflow",
    "graph_version": "3f1c",
    "engines": {"planner": EXTRACTIVE_ENGINE_EXAMPLE | {"engine": "policy", "model": "planner@3"}},
    "policy_version_ids": {"planner": POLICY_VERSION_ID},
    "scorers": [SCORER_EXAMPLE | {"version": "1"}],
    "size": 8,
    "seed": 0,
    "max_attempts": 3,
    "tags": ["pilot"],
    "state": "complete",
    "created_at": TIMESTAMP,
    "completed_at": TIMESTAMP,
}

ROLLOUT_EXAMPLE: Example = {
    "run_id": RUN_ID,
    "group_id": GROUP_ID,
    "batch_id": BATCH_ID,
    "task_id": TASK_ID,
    "member": 0,
    "attempt": 1,
    "graph": "agentflow",
    "question": "What is the capital of Australia?",
    "status": "done",
    "stop_reason": "answered",
    "seed": 204467781,
    "turns": 2,
    "tokens": 310,
    "outcome": "answered",
    "reward": 1,
    "created_at": TIMESTAMP,
    "ended_at": TIMESTAMP,
    "finalized_at": TIMESTAMP,
}

SCORE_EXAMPLE: Example = {
    "run_id": RUN_ID,
    "scorer": "exact_match",
    "scorer_version": "1",
    "version": 1,
    "value": 1,
    "failure": "",
    "detail": {},
    "created_at": TIMESTAMP,
}

POLICY_VERSION_EXAMPLE: Example = {
    "id": POLICY_VERSION_ID,
    "name": "planner",
    "version": 3,
    "parent_id": None,
    "kind": "full",
    "base_model": "",
    "uri": "/srv/policies/planner@3",
    "sha256": SNAPSHOT_SHA256,
    "tokenizer_sha256": SNAPSHOT_SHA256,
    "template_sha256": SNAPSHOT_SHA256,
    "state": "candidate",
    "lineage": {},
    "evaluation": {},
    "created_at": TIMESTAMP,
    "canary_fraction": None,
}

TRAINING_EXAMPLES: dict[str, Example] = {
    "TrainingSignalOut": SIGNAL_EXAMPLE,
    "TrainingSignalsOut": {"consent": CONSENT_EXAMPLE, "items": [SIGNAL_EXAMPLE]},
    "TrainingConsentIn": {"is_allowed": False},
    "TrainingConsentOut": CONSENT_EXAMPLE,
    "AnswerCorrectionIn": {"answer": "Robert Stevenson", "text_origin": "person"},
    "TasksFromRunsIn": {"dataset": "ours", "tag": "reviewed", "min_rating": 0.5, "is_dry_run": True},
    "TaskSetOut": {
        "id": None,
        "dataset": "ours",
        "held_out_dataset": "ours-held-out",
        "train_count": 1,
        "held_out_count": 0,
        "new_count": 0,
        "left_out": {"no_consent": 2, "no_signal": 14},
        "tasks": [
            {
                "run_id": RUN_ID,
                "question": "Who built Bell Rock?",
                "split": "train",
                "signals": ["answer_correction"],
                "has_answer": True,
                "evidence_count": 0,
                "criterion_count": 0,
            }
        ],
    },
    "TasksIn": {"dataset": "capitals", "tasks": [{"question": TASK_EXAMPLE["question"], "answers": ["Canberra"]}]},
    "TasksOut": {"dataset": "capitals", "task_ids": [TASK_ID], "new_count": 1},
    "TaskOut": TASK_EXAMPLE,
    "TaskPage": {"items": [TASK_EXAMPLE], "next": None},
    "RolloutBatchIn": {
        "graph": "agentflow",
        "tasks": {"dataset": "capitals"},
        "group_size": 8,
        "policies": {"planner": "planner@3"},
        "scorers": [SCORER_EXAMPLE],
        "budget": {"max_turns": 3},
    },
    "RolloutBatchOut": BATCH_EXAMPLE,
    "RolloutBatchPage": {"items": [BATCH_EXAMPLE], "next": None},
    "RolloutGroupDetail": GROUP_EXAMPLE | {"rollouts": [ROLLOUT_EXAMPLE], "scores": [SCORE_EXAMPLE]},
    "RolloutGroupPage": {"items": [GROUP_EXAMPLE], "next": None},
    "RolloutDetail": ROLLOUT_EXAMPLE | {"scores": [SCORE_EXAMPLE]},
    "RolloutPage": {"items": [ROLLOUT_EXAMPLE], "next": None},
    "PolicyVersionOut": POLICY_VERSION_EXAMPLE,
    "PolicyVersionPage": {"items": [POLICY_VERSION_EXAMPLE], "next": None},
    "PolicyVersionStateIn": {"state": "active"},
    "EvaluationOut": promotion.EVALUATION_EXAMPLE,
    "EvaluationPage": {"items": [promotion.EVALUATION_EXAMPLE], "next": None},
    "PromoteIn": {"force": False},
    "PromotionOut": {
        "policy_version": POLICY_VERSION_EXAMPLE | {"state": "active"},
        "gate_result": promotion.GATE_RESULT_EXAMPLE,
    },
    "CanaryIn": {"fraction": 0.1},
    "RollbackOut": {"message": "planner@2 is active again and replaces planner@3"},
    "TrajectoryOut": trajectories.TRAJECTORY_EXAMPLE,
    "DistillIn": {"engine": {"engine": "litellm", "model": "openai/gpt-5-mini"}, "max_cost_usd": 0.5},
    "DistillationPreviewOut": prompt_libraries.DISTILLATION_PREVIEW_EXAMPLE,
    "PromptLibraryOut": prompt_libraries.PROMPT_LIBRARY_EXAMPLE,
    "TrainingJobOut": {
        name: value
        for name, value in training_jobs.JOB_EXAMPLE.items()
        if name not in ("ledger", "seconds_left", "judges")
    },
    "TrainingJobDetail": training_jobs.JOB_EXAMPLE,
    "TrainingJobPage": {"items": [], "next": None},
    "TrainingMetricList": training_jobs.METRICS_EXAMPLE,
    "TrainingEventList": training_jobs.EVENTS_EXAMPLE,
}
