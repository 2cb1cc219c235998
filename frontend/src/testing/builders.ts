/** Records as the server sends them. Tests override the fields that they need. */

import type { InputRequest } from "@/shared/api/input-requests";
import type { Graph, Tenant } from "@/shared/api/installation";
import type { Source } from "@/shared/api/library";
import type { Preset, Provider, ProviderKind, ProviderModel, ProviderTest } from "@/shared/api/providers";
import type { Report, Sentence } from "@/shared/api/reports";
import type { RunDetail, Step } from "@/shared/api/runs";
import type { Evaluation, JobDetail, Metric, TrainingEvent, Version } from "@/shared/api/training";
import type { RoleCall, Trajectory } from "@/shared/api/trajectories";

export const RUN_ID = "00000000-0000-4000-8000-000000000001";
export const THREAD_ID = "00000000-0000-4000-8000-000000000002";
export const TEXT_ID = "00000000-0000-4000-8000-000000000003";
export const SOURCE_ID = "00000000-0000-4000-8000-000000000004";
export const JOB_ID = "00000000-0000-4000-8000-000000000005";
export const VERSION_ID = "00000000-0000-4000-8000-000000000006";
const AT = "2026-03-01T10:00:00Z";

export function aRun(part: Partial<RunDetail> = {}): RunDetail {
  return {
    id: RUN_ID,
    thread_id: THREAD_ID,
    question: "How does undici reuse connections?",
    graph: "agentflow",
    graph_version: "77af",
    status: "running",
    stop_reason: null,
    waiting_for: null,
    texts: {},
    waiting_since: null,
    error: null,
    engines: {},
    scope: {
      collections: [],
      sources: [],
      web: false,
      mcp: [],
      code: false,
      only_domains: [],
      excluded_domains: [],
      offline: false,
    },
    interactions: [],
    budget: { depth: "standard", max_turns: 12, max_tokens: null, max_cost_usd: null, max_seconds: null },
    usage: { turns: 2, tokens: 0, cost_usd: 0, seconds: 4 },
    deadline: null,
    last_seq: 0,
    created_at: AT,
    started_at: AT,
    ended_at: null,
    title: null,
    given_title: "",
    tags: [],
    pinned_at: null,
    archived_at: null,
    pending_input_requests: 0,
    interrupted: false,
    thread_runs: 1,
    live: null,
    step_marks: "",
    ...part,
  };
}

export function aGraph(part: Partial<Graph> = {}): Graph {
  return {
    name: "agentflow",
    title: "AgentFlow",
    description: "",
    texts: {},
    version: "77af",
    roles: ["planner"],
    optional_roles: [],
    interactions: ["clarify", "plan_review"],
    diagram: "",
    nodes: ["__start__", "planner", "executor", "__end__"],
    edges: [
      { source: "__start__", target: "planner", is_conditional: false },
      { source: "planner", target: "executor", is_conditional: true },
      { source: "executor", target: "planner", is_conditional: true },
      { source: "executor", target: "__end__", is_conditional: false },
    ],
    has_editable_plan: true,
    state_view: "memory",
    ...part,
  };
}

export function aStep(seq: number, part: Partial<Step> = {}): Step {
  return {
    run_id: RUN_ID,
    seq,
    kind: "tool_result",
    label: "search",
    title: `Step number ${seq}`,
    detail: "",
    summary: null,
    title_text: null,
    detail_texts: [],
    ok: true,
    ms: 40,
    tokens: 0,
    turn: 1,
    at: AT,
    ...part,
  };
}

export function steps(from: number, to: number): Step[] {
  return Array.from({ length: to - from + 1 }, (_, at) => aStep(from + at));
}

export function aSentence(part: Partial<Sentence> = {}): Sentence {
  return {
    id: "s1",
    text: "It rose.",
    citations: [],
    supported: true,
    rejected: [],
    rejected_texts: [],
    passages: [],
    unsupported_values: [],
    verdict: "supported",
    rule_verdict: "supported",
    judgment: null,
    follows_from: [],
    reasons: [],
    edited: false,
    layout: "statement",
    ...part,
  };
}

export function aReport(part: Partial<Report> = {}): Report {
  return {
    run_id: RUN_ID,
    version: 1,
    status: "complete",
    reason: "answered",
    title: "Connections in undici",
    answer: aSentence({ id: "s1", text: "A client keeps one connection.", citations: [1] }),
    sections: [
      {
        heading: "Details",
        sentences: [
          aSentence({
            id: "s2",
            text: "It is always faster.",
            supported: false,
            rejected: ["The quote is not there."],
            rejected_texts: [null],
            verdict: "not_found",
            rule_verdict: "not_found",
            reasons: ["no source", "The quote is not there."],
          }),
        ],
      },
    ],
    citations: [
      {
        number: 1,
        text_id: TEXT_ID,
        source_id: SOURCE_ID,
        title: "undici: Client",
        start: 20,
        end: 48,
        quote: "keeps one connection open",
        verified: true,
        source: "S1",
        position: "section “Client”, line 3",
        position_texts: [
          { code: "section", parameters: { heading: "Client" } },
          { code: "line", parameters: { first: "3" } },
        ],
      },
    ],
    sources: [
      {
        id: "S1",
        source_id: SOURCE_ID,
        title: "undici: Client",
        name: "docs/Client.md",
        site: "",
        author: "",
        published: "",
        retrieved_at: AT,
        description: "docs/Client.md · added to the library 3 March 2026",
        citations: [1],
      },
    ],
    limitations: "No measurement was found.",
    author: "extractive",
    revision: null,
    check: null,
    judged_by: "",
    texts: {},
    conflicts: [],
    conflict_search: "",
    edited_by: null,
    editor: null,
    note: "",
    base_version: null,
    follow_up_run_id: null,
    version_of: null,
    latest_version: 1,
    created_at: AT,
    ...part,
  };
}

export function aTrajectory(part: Partial<Trajectory> = {}): Trajectory {
  return {
    run_id: RUN_ID,
    kind: "rollout",
    graph: "agentflow",
    outcome: "answered",
    reward: 1,
    group_id: null,
    member: 0,
    attempt: 1,
    scores: [],
    segments: [{ index: 0, role: "planner", boundary_reason: "root", parent_index: null, shared_tokens: null }],
    role_calls: [aRoleCall()],
    next: null,
    ...part,
  };
}

export function aRoleCall(part: Partial<RoleCall> = {}): RoleCall {
  return {
    seq: 2,
    turn: 1,
    segment: 0,
    position: 0,
    role: "planner",
    engine: "policy",
    model: "small@1",
    policy: "small@1",
    messages: [],
    completion: "alpha b",
    spans: [{ kind: "memory_edit", start_char: 0, end_char: 7, start_token: 0, end_token: 2 }],
    tokens: {
      offset: 0,
      prompt_ids: [1, 2],
      prompt_token_texts: null,
      completion_ids: [7, 8, 9],
      completion_token_texts: ["alpha", " b", ""],
      logprobs: [-0.01, -1.2, -4],
      loss_mask: [true, false, true],
      entropy: null,
    },
    trainable: "rl",
    trainable_reason: "",
    quarantine: "",
    sampling: {},
    finish_reason: "stop",
    ends_run: false,
    failed_attempts: 0,
    prompt_tokens: 2,
    completion_tokens: 3,
    cached_prompt_tokens: 0,
    reasoning_tokens: 0,
    cost_usd: 0,
    checkpoint_id: null,
    at: AT,
    ...part,
  };
}

export function aSource(part: Partial<Source> = {}): Source {
  return {
    id: SOURCE_ID,
    collection: "undici",
    name: "docs/Client.md",
    title: "undici: Client",
    media_type: "text/markdown",
    size_bytes: 18_231,
    char_count: 18_000,
    text_id: TEXT_ID,
    snapshot: "9f3c11aa22bb33cc44dd55ee66ff7788990021",
    added_at: AT,
    ...part,
  };
}

export function aJob(part: Partial<JobDetail> = {}): JobDetail {
  return {
    id: JOB_ID,
    kind: "train",
    name: "planner",
    config: { algorithm: "flow-grpo", policy: "planner@1", max_steps: 60 },
    config_sha256: "9f2c",
    seed: 0,
    state: "running",
    requested_action: null,
    waiting_for: "",
    phase: "forward",
    step: 2,
    planned_steps: 60,
    seconds_left: 290,
    judges: { calls: 0, cost_usd: "0", max_calls: null, max_cost_usd: null },
    groups: 8,
    rollouts: 60,
    produced_version_id: null,
    stop_reason: "",
    error: "",
    created_at: AT,
    started_at: AT,
    ended_at: null,
    ledger: { used: 60, zero_advantage: 4 },
    ...part,
  };
}

export function aMetric(step: number, name: string, value: number | null): Metric {
  return { step, name, value, at: AT };
}

export function anEvent(kind: string, detail: Record<string, unknown> = {}): TrainingEvent {
  return { id: `event-${kind}`, job_id: JOB_ID, policy_id: null, kind, detail, at: AT };
}

export function aVersion(part: Partial<Version> = {}): Version {
  return {
    id: VERSION_ID,
    name: "planner",
    version: 2,
    parent_id: null,
    kind: "full",
    base_model: "",
    uri: "/policies/planner/2",
    sha256: "9f3c11aa22bb33cc44dd55ee66ff7788990021",
    tokenizer_sha256: "",
    template_sha256: "",
    state: "candidate",
    lineage: { job: JOB_ID, steps: 60, rollouts: 480 },
    evaluation: {},
    created_at: AT,
    canary_fraction: null,
    ...part,
  };
}

export function anEvaluation(part: Partial<Evaluation> = {}): Evaluation {
  return {
    id: "00000000-0000-4000-8000-000000000007",
    policy_id: VERSION_ID,
    policy_version: "planner@2",
    dataset: "heldout-1@500",
    mode: "greedy",
    graph: "agentflow",
    seed: 0,
    batch_id: null,
    tasks: 200,
    rollouts: 200,
    scored: 200,
    reward: 0.61,
    low: 0.54,
    high: 0.68,
    answered_fraction: 0.98,
    violated_fraction: 0,
    turns: 3.2,
    tokens: 410,
    created_at: AT,
    ...part,
  };
}

export function anInputRequest(number: number, part: Partial<InputRequest> = {}): InputRequest {
  return {
    number,
    kind: "free_text",
    prompt: "Which year?",
    detail: "",
    texts: {},
    choices: [],
    steps: [],
    response_form: null,
    pending: true,
    requested_at: AT,
    default_at: null,
    response: null,
    ...part,
  };
}

export function aTenant(part: Partial<Tenant> = {}): Tenant {
  return {
    name: "local",
    training_opt_in: false,
    max_daily_spend_usd: null,
    spent_today_usd: 0,
    default_preset: null,
    default_engine: "extractive",
    ...part,
  };
}

export function aProviderKind(part: Partial<ProviderKind> = {}): ProviderKind {
  return {
    name: "openai",
    title: "OpenAI",
    key_page: "https://platform.openai.com/api-keys",
    suggested_models: ["gpt-5-mini"],
    is_server: false,
    needs_address: false,
    default_address: "",
    environment_key: false,
    ...part,
  };
}

const SERVER_KIND = { key_page: "", suggested_models: [], is_server: true };

export const PROVIDER_KINDS = [
  aProviderKind(),
  aProviderKind({ ...SERVER_KIND, name: "ollama_chat", title: "Ollama", default_address: "http://127.0.0.1:11434" }),
  aProviderKind({ ...SERVER_KIND, name: "hosted_vllm", title: "vLLM", default_address: "http://127.0.0.1:8000/v1" }),
];

export function aProvider(part: Partial<Provider> = {}): Provider {
  return {
    name: "openai",
    provider: "openai",
    api_base: "",
    max_concurrent_calls: null,
    key_set: true,
    key_set_at: AT,
    created_at: AT,
    updated_at: AT,
    last_test: null,
    ...part,
  };
}

export function aModel(part: Partial<ProviderModel> = {}): ProviderModel {
  return {
    name: "gpt-5-mini",
    context_tokens: 272_000,
    input_usd_per_million: 0.25,
    output_usd_per_million: 2,
    calls_tools: true,
    follows_schema: true,
    reads_images: null,
    reasons: true,
    ...part,
  };
}

export function aProviderTest(part: Partial<ProviderTest> = {}): ProviderTest {
  return {
    model: "openai/gpt-5-mini",
    tested_at: AT,
    seconds: 4.2,
    cost_usd: 0.02,
    priced: true,
    tokens: 1_234,
    capabilities: [
      { name: "plain answer", outcome: "works", detail: "1.2 s", cause: "" },
      { name: "tool call", outcome: "works", detail: "1.1 s", cause: "" },
    ],
    ...part,
  };
}

export function aPreset(part: Partial<Preset> = {}): Preset {
  const engine = { engine: "litellm", prompt_format: "", prompt_library: "", api_base: "", options: {} };
  return {
    name: "gpt-5-mini",
    engines: { all: { ...engine, model: "openai/gpt-5-mini" } },
    budget: {},
    built_in: false,
    ...part,
  };
}
