"""Rows become Prometheus figures that can be added up and divided."""

from prometheus_client.parser import text_string_to_metric_families

from offing.telemetry.metrics import EngineMetric, MetricRow, RunMetric, StepMetric, render_metrics


def samples(*rows: MetricRow) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(render_metrics(rows).decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_queue_wait_adds_up_over_the_statuses_of_a_graph() -> None:
    got = samples(
        RunMetric("agentflow", "done", 3, queued_seconds=1.5, started_count=3),
        RunMetric("agentflow", "queued", 2, 0.0, 0),
    )
    graph = ("graph", "agentflow")
    assert got["offing_runs", (graph, ("status", "queued"))] == 2
    assert got["offing_queue_wait_seconds_sum", (graph,)] == 1.5
    assert got["offing_queue_wait_seconds_count", (graph,)] == 3


def test_steps_and_engines_are_counted_with_their_failures() -> None:
    got = samples(
        StepMetric("tool", "search", 10, duration_seconds=2.5, timed_count=9, failed_count=1),
        EngineMetric("planner", "litellm", 'openai/"x"', 100, 20, 0.25, 2),
    )
    step = (("kind", "tool"), ("label", "search"))
    call = (("engine", "litellm"), ("model", 'openai/"x"'), ("role", "planner"))
    assert got["offing_steps_total", step] == 10
    assert got["offing_step_failures_total", step] == 1
    assert got["offing_step_seconds_count", step] == 9
    assert got["offing_tokens_total", tuple(sorted([*call, ("direction", "output")]))] == 20
    assert got["offing_cost_usd_total", call] == 0.25
    assert got["offing_engine_failures_total", call] == 2


def test_the_time_to_the_first_token_is_a_histogram_of_streamed_calls() -> None:
    counts = (0, 1, 1, 2, 2, 2, 2, 2, 2)
    streamed = EngineMetric(
        "planner", "litellm", "m", streamed_count=3, first_token_seconds=71.0, first_token_counts=counts
    )
    figures = samples(streamed, EngineMetric("planner", "extractive", ""))
    call = (("engine", "litellm"), ("model", "m"), ("role", "planner"))
    name = "offing_first_token_seconds"
    assert figures[f"{name}_bucket", tuple(sorted([*call, ("le", "1.0")]))] == 2
    assert figures[f"{name}_bucket", tuple(sorted([*call, ("le", "+Inf")]))] == 3
    assert (figures[f"{name}_sum", call], figures[f"{name}_count", call]) == (71.0, 3)
    assert not [key for key in figures if key[0].startswith(name) and ("engine", "extractive") in key[1]]


def test_waits_for_the_limit_of_a_provider_are_summed_over_the_calls_that_waited() -> None:
    figures = samples(
        EngineMetric("planner", "litellm", "m", slot_wait_count=2, slot_wait_seconds=3.5),
        EngineMetric("planner", "litellm", "free"),
    )
    call = (("engine", "litellm"), ("model", "m"), ("role", "planner"))
    assert figures["offing_slot_wait_seconds_sum", call] == 3.5
    assert figures["offing_slot_wait_seconds_count", call] == 2
    assert not [key for key in figures if "slot_wait" in key[0] and ("model", "free") in key[1]]


def test_no_row_is_no_error() -> None:
    assert samples() == {}
    assert b"offing_runs" in render_metrics([])
