"""`make bench` measures every part and writes docs/benchmarks.md.

`python -m tests.bench PART…` measures some parts and prints them; with `--write` it also replaces their rows on the
page. `--guard` measures the ratios to bare LangGraph and fails where one is more than 1.5 times the recorded one.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from offing.local.servers import ServerUrls
from tests.bench.ask_command import cold_and_warm
from tests.bench.benchmark_page import circumstances, rows, store, stored, table
from tests.bench.engine import engine_speed
from tests.bench.export import export_speed
from tests.bench.fairness import fairness
from tests.bench.graph_accuracy import graph_accuracy
from tests.bench.history import history_bytes
from tests.bench.langgraph_clients import langgraph_clients
from tests.bench.library import library_size
from tests.bench.long_research import long_research
from tests.bench.long_run import long_run
from tests.bench.measurement import Measurement, merged
from tests.bench.platform import Client, client, measured_stack
from tests.bench.policy import policy_speed
from tests.bench.protocol import latency, per_turn, supersteps, throughput
from tests.bench.ratio_guard import too_slow
from tests.bench.ratios import cpu_ratios
from tests.bench.record import bytes_a_token
from tests.bench.retrieval import retrieval_quality
from tests.bench.rollouts import rollouts_per_second
from tests.bench.sandbox import sandbox_speed
from tests.bench.sdk import per_node
from tests.bench.trainer import trainer_speed
from tests.bench.training_loop import loop_speed
from tests.bench.vectors import vector_search_speed
from tests.bench.waiting_runs import RUNS, many_waiting
from tests.bench.web_pages import pages_speed
from tests.bench.web_ui import web_ui_speed
from tests.bench.whole_cost import whole_cost

Measure = Callable[[Client, ServerUrls], Awaitable[Sequence[Measurement]]]


@dataclass(frozen=True, slots=True)
class OnStack:
    """A part that is measured on its own servers and workers, which stay up for all of its rounds."""

    measure: Measure
    rounds: int
    workers: int = 1
    """0 means as many processes as `offing up` starts."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def measured(self) -> list[Measurement]:
        with measured_stack(workers=self.workers, **self.environment) as servers:
            return asyncio.run(self._measured(servers))

    async def _measured(self, servers: ServerUrls) -> list[Measurement]:
        async with client(servers) as one:
            return merged([await self.measure(one, servers) for _ in range(self.rounds)])


@dataclass(frozen=True, slots=True)
class Alone:
    """A part that starts what it needs. Most of them repeat the measurement themselves and therefore have one round."""

    measure: Callable[[], Sequence[Measurement]]
    rounds: int = 1

    def measured(self) -> list[Measurement]:
        return merged([self.measure() for _ in range(self.rounds)])


PARTS: Mapping[str, OnStack | Alone] = {
    "ratios": OnStack(cpu_ratios, 5),
    "latency": OnStack(lambda one, _: latency(one), 5),
    "throughput": OnStack(throughput, 5),
    "cost": OnStack(whole_cost, 5),
    "langgraph": OnStack(langgraph_clients, 3),
    "turns": OnStack(lambda one, _: per_turn(one), 5),
    "supersteps": OnStack(supersteps, 5),
    "long": OnStack(long_run, 3),
    "history": OnStack(history_bytes, 1),
    "rollouts": OnStack(lambda one, _: rollouts_per_second(one), 3, workers=0),
    "flows": OnStack(lambda one, _: graph_accuracy(one), 1),
    "rounds": OnStack(long_research, 1),
    "record": OnStack(lambda one, servers: bytes_a_token(one, servers.owner_url), 1),
    "waiting": OnStack(lambda one, _: many_waiting(one), 1, environment={"OFFING_WORKER_CONCURRENCY": str(RUNS)}),
    "sdk": OnStack(lambda one, _: per_node(one), 5),
    "ask": Alone(cold_and_warm, 3),
    "engine": Alone(engine_speed),
    "export": Alone(export_speed),
    "trainer": Alone(trainer_speed),
    "loop": Alone(loop_speed),
    "sandbox": Alone(sandbox_speed),
    "policy": Alone(policy_speed, 5),
    "pages": Alone(pages_speed),
    "web": Alone(web_ui_speed),
    "fairness": Alone(fairness, 3),
    "retrieval": Alone(retrieval_quality),
    "library": Alone(library_size),
    "vectors": Alone(vector_search_speed),
}


def main() -> None:
    expected = _arguments()
    if expected.guard:
        sys.exit(_guarded())
    write = expected.write or not expected.parts
    for part in expected.parts or PARTS:
        about = circumstances()
        measured = rows(part, PARTS[part].measured(), about)
        print(table(measured), f"\nCommit {about.commit}, {about.machine}, load averages {about.load}\n", flush=True)
        if write:
            store(part, measured, list(PARTS))


def _arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    reader.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=", ".join(PARTS))
    reader.add_argument("--write", action="store_true", help="replace the rows of these parts in docs/benchmarks.md")
    reader.add_argument("--guard", action="store_true", help="fail where a ratio has grown by half")
    return reader.parse_args()


def _guarded() -> int:
    """Measure the ratios, compare them with the recorded ones, and return the exit code."""
    measurements = OnStack(cpu_ratios, 3).measured()
    print(table(rows("ratios", measurements, circumstances())))
    problems = too_slow(stored(), measurements)
    for problem in problems:
        print(f"bench: {problem}", file=sys.stderr)
    print(f"{len(measurements) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


main()
