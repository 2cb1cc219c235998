"""Which runs are traced: graphs, engines, endings and durabilities."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from offing.core.input_request import InputResponse, ReviewDecision
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest
from offing_world.tasks import WorldTask, generate_tasks
from tests.chaos import graphs as chaos_graphs
from tests.chaos.trial import QUESTION
from tests.traces import graphs
from tests.traces.kernel import ControlRequest
from tests.workers import langgraph_scripts, segment_graph
from tests.workers.langgraph_scripts import (
    FUNCTIONAL,
    PLAYS,
    REACT,
    REMEMBERING,
    REVIEW,
    SUPERVISOR,
    Play,
    calls,
    says,
)
from tests.workers.parent_graph import question_for
from tests.workers.test_langgraph_training import completion_writer

GRAPHS = ",".join((chaos_graphs.GRAPHS, langgraph_scripts.GRAPHS, segment_graph.GRAPHS, graphs.GRAPHS))

TASK: WorldTask = next(iter(generate_tasks("heldout-8@small", count=1, hops=(4, 4))))

TURNS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One run to trace, with what people do meanwhile."""

    name: str
    request: RunRequest
    answers: Mapping[str, tuple[InputResponse, ...]] = field(default_factory=dict[str, tuple[InputResponse, ...]])
    """What is said to each input request, by its words, one after the other."""
    control: ControlRequest | None = None
    """What a person wants on the way. None: nothing."""
    control_after: int | None = None
    """They say so between two slices, once this many turns have begun. None: when the graph signals."""
    slice_turns: int = 64
    says: Callable[[dict[str, Any]], str] | None = None
    """What a policy writes to a chat request. None: no policy is asked."""
    teacher: RunRequest | None = None
    """A run by rules, in whose words a policy answers. None: it answers as `says`, or none is asked."""
    earlier: RunRequest | None = None
    """A run that ends in the same thread before."""
    beside: bool = False
    """It has branches side by side: whose transaction is the nth is chance."""
    graphs: str = GRAPHS


BESIDE = {
    "forked",
    "branching",
    "plain_branches",
    "plain_map_reduce",
    "plain_functional",
    "plain_review",
    "plain_keeping",
}
"""Graphs with branches that write side by side, or whose nodes stream while they ask."""


def cases() -> list[Case]:
    created = [*_graph_cases(), *_small(), *_working(), *_waiting(), *_families(), *_recorded(), *_langgraph_cases()]
    assert len({case.name for case in created}) == len(created)
    return [replace(case, beside=case.request.graph in BESIDE) for case in created]


# Graphs ---------------------------------------------------------------------------------------------------------------

GRAPH_NAMES = ("agentflow", "iterresearch", "memact-narrow", "supo-brief", "hiper")


def _graph_cases() -> list[Case]:
    results: list[Case] = []
    for graph in GRAPH_NAMES:
        library = Case(f"{graph}, extractive", RunRequest(QUESTION, graph, budget=Budget(max_turns=6)))
        world = Case(f"{graph}, rules", _in_world(graph))
        policy = _by_trained_policy(world)
        results += [library, world, policy, *map(_at_exit, (library, world, policy))]
        results.append(_renamed(_turned(library, 2), "turn limit"))
        results.append(_wished(library, "finish", 2))
        results.append(_wished(library, "cancel", 2))
    for graph in ("router", "research_team"):
        results.append(Case(f"{graph}, extractive", RunRequest(QUESTION, graph, budget=Budget(max_turns=24))))
    return [*results, _at_exit(results[-2])]


def _in_world(graph: str) -> RunRequest:
    roles = open_registry(GRAPHS)[graph].roles
    rules = {r.name: "oracle" if "oracle" in r.rules else "world" for r in roles if r.rules}
    forms = {r.name: "compact" if r.name == AGENTS.get(graph, "agent") else "" for r in roles}
    engines = {
        name: EngineConfig(engine="rules", model=rule, prompt_format=forms[name]) for name, rule in rules.items()
    }
    return RunRequest(TASK.question, graph, budget=Budget(max_turns=10), engines=engines, scope=TASK.scope)


AGENTS = {"agentflow": "planner", "iterresearch": "researcher"}
"""The role of a graph that a policy plays; of others, `agent`."""


def _by_trained_policy(world: Case) -> Case:
    request = world.request
    agent = EngineConfig(engine="policy", model="small@1", prompt_format="compact", max_tokens=400)
    prompt = replace(request, engines={**request.engines, AGENTS.get(request.graph, "agent"): agent}, seed=11)
    return Case(f"{request.graph}, policy", prompt, teacher=request)


def _renamed(case: Case, more: str) -> Case:
    return replace(case, name=f"{case.name}, {more}")


def _turned(case: Case, turns: int) -> Case:
    return replace(case, request=replace(case.request, budget=replace(case.request.budget, max_turns=turns)))


def _at_exit(case: Case) -> Case:
    """Nothing is written before the slice ends."""
    return _renamed(replace(case, request=replace(case.request, durability="exit")), "exit")


def _wished(case: Case, request: ControlRequest, after: int) -> Case:
    return _renamed(replace(case, control=request, control_after=after, slice_turns=1), f"{request} after {after}")


# Small graphs ---------------------------------------------------------------------------------------------------------


def _scripted(**options: Any) -> dict[str, EngineConfig]:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "cost_usd": "0.01"}
    script = {"answers": [{"word": "w{turn}-{nonce}"}], "usage": usage, **options}
    return {"speaker": EngineConfig(engine="scripted", options=script)}


def _small() -> list[Case]:
    counting = Case(
        "counting", RunRequest("Count", "counting", budget=Budget(max_turns=TURNS), engines=_scripted(), seed=5)
    )
    forked = Case("forked", replace_graph(counting, "forked").request)
    noop, broken = (Case(name, RunRequest("Nothing", name)) for name in ("noop", "broken"))
    results = [counting, forked, noop, broken]
    results += [
        *map(_at_exit, results),
        _renamed(replace(counting, slice_turns=1), "slices of a turn"),
        _renamed(replace(_at_exit(counting), slice_turns=1), "slices of a turn"),
        _budgeted(counting, "token limit", max_tokens=11),
        _budgeted(counting, "money limit", max_cost_usd=Decimal("0.025")),
        _with_engines(
            counting, "fails at turn 2", _scripted(fail={"2": {"kind": "authentication_failed", "message": "no key"}})
        ),
        _with_engines(counting, "recovers", _scripted(fail={"2": {"recovers": True, "message": "busy"}})),
        _with_engines(counting, "speaks", _scripted(speaks=True)),
        _with_engines(counting, "unusable", _scripted(answers=[{"other": 1}])),
        _wished(_turned(counting, 4), "finish", 2),
        _wished(_turned(counting, 4), "cancel", 2),
        _wished(_turned(counting, 4), "pause", 2),
    ]
    return results


def replace_graph(case: Case, graph: str) -> Case:
    return replace(case, name=graph, request=replace(case.request, graph=graph))


def _budgeted(case: Case, named: str, **limits: Any) -> Case:
    budget = replace(case.request.budget, **limits)
    return _renamed(replace(case, request=replace(case.request, budget=budget)), named)


def _with_engines(case: Case, named: str, engines: Mapping[str, EngineConfig]) -> Case:
    return _renamed(replace(case, request=replace(case.request, engines=engines)), named)


# Effects, failures and wishes in the middle ---------------------------------------------------------------------------

FREE = ToolPolicy(
    rules=tuple(
        ToolRule(tool=name, allow_other_args=True, reason="Its effect is a line in a list.") for name in graphs.TOOLS
    )
)


def _work(message: str, policy: ToolPolicy | None = FREE, **more: Any) -> Case:
    request = RunRequest(
        message, "working", budget=Budget(max_turns=4), engines=_scripted(), seed=7, tool_policy=policy
    )
    return Case(f"working, {message}", request, **more)


def _working() -> list[Case]:
    effects = _work("look put launch fail")
    approved = (InputResponse(approved=True), InputResponse(approved=False, comment="not again"))
    return [
        effects,
        _at_exit(effects),
        _work("put narrows"),
        _work("put writes raises"),
        _at_exit(_work("put writes raises")),
        _work("put raises"),
        *(_renamed(_work("put signals", control=request), request) for request in ("cancel", "finish", "pause")),
        _renamed(
            _turned(_work("launch", None, answers={"May the run use launch?": approved}), 2), "approved by a person"
        ),
    ]


# People and child runs ------------------------------------------------------------------------------------------------


def _waiting() -> list[Case]:
    edited = InputResponse(decision=ReviewDecision.EDITED, steps=("read", "write"))
    messages = {
        "Find it": (edited,),
        "Which year?": (InputResponse(text="1991"),),
        "Delete the draft?": (InputResponse(approved=True, comment="do"),),
        "Which one?": (InputResponse(text="[1, 2]"),),
        "First?": (InputResponse(text="a"),),
        "Second?": (InputResponse(text="b"),),
        "Left?": (InputResponse(text="l"),),
        "Right?": (InputResponse(text="r"),),
    }
    names = ("asking", "plain_ask", "plain_branches", "branching")
    results = [Case(name, RunRequest("Ask me", name), messages) for name in names]
    return [
        *results,
        *(
            replace(case, name=f"{case.name}, {request}", control=request, control_after=0)
            for case in results[:2]
            for request in ("cancel", "finish")
        ),
    ]


def _families() -> list[Case]:
    two = question_for({"question": "one", "turns": 1}, {"question": "two", "turns": 2})
    family = Case("family", RunRequest(two, "family", budget=Budget(max_turns=20), engines=_scripted()))
    nested = question_for({"question": question_for({"question": "leaf", "turns": 1}), "graph": "family"})
    broken = question_for({"question": "x", "graph": "broken"})
    conversing = RunRequest("And now?", "conversing")
    return [
        family,
        _at_exit(family),
        Case("family, nested", replace(family.request, question=nested)),
        Case("family, a child raises", replace(family.request, question=broken)),
        Case("conversing", conversing, earlier=replace(conversing, question="What is it?")),
        *_follow_ups(),
    ]


def _follow_ups() -> list[Case]:
    """Follow-ups on a report, whose kind rules choose."""
    earlier = RunRequest(QUESTION, "agentflow", budget=Budget(max_turns=6))
    texts = {
        "question": "What do the rings of a Fresnel lens gather?",
        "edit": "Please shorten the report.",
        "research": "Look up how keepers wound the clockwork.",
    }
    return [
        Case(f"follow-up, {kind}", replace(earlier, question=text), earlier=earlier) for kind, text in texts.items()
    ]


# What trainers read ---------------------------------------------------------------------------------------------------


def _word(body: dict[str, Any]) -> str:
    """Another one for other words before."""
    return f"wörd {blake2b(json.dumps(body['messages']).encode(), digest_size=3).hexdigest()}"


def _mumbled(body: dict[str, Any]) -> str:
    """Nothing usable to a third of what is asked, by its seed."""
    word = f"{_word(body)} {body['seed'] % 1000}"
    return f"{segment_graph.MUMBLED} {word}" if body["seed"] % 3 == 0 else word


def _recorded() -> list[Case]:
    choice = EngineConfig(engine="policy", model="small@1", prompt_format="compact", max_tokens=400)
    engines = {"diarist": choice, "reader": choice}
    request = RunRequest("Say words", "recording", budget=Budget(max_turns=6), engines=engines, seed=5)
    plain = Case("recording", request, says=_word)
    limited = _budgeted(plain, "token limit", max_tokens=900)
    rejected = _renamed(replace(plain, says=_mumbled), "rejected")
    return [plain, _at_exit(plain), rejected, _at_exit(rejected), limited]


# Graphs that are written for LangGraph alone --------------------------------------------------------------------------


def _by_policy(play: Play) -> Case:
    """Each role asks for a version of its own name, by which the server knows whose lines to say."""
    lines = {role: completion_writer(play, role) for role in play.lines}
    engines = {role: EngineConfig(engine="policy", model=f"{role}@1", max_tokens=400) for role in play.lines}
    request = RunRequest(play.question, play.graph, engines=engines, budget=Budget(max_turns=play.turns), seed=3)
    return Case(f"{play.graph}, policy", request, says=lambda body: lines[body["model"].partition("@")[0]](body))


def _langgraph_cases() -> list[Case]:
    keeping = Play("plain_keeping", "Work", {"agent": {"answers": [says("Done.")]}}, "Done.", 1)
    reading = {"reader": {"answers": [calls("search_library", query="Fresnel lens light"), says(QUOTED_ANSWER)]}}
    reader = Play("plain_reader", QUESTION, reading, "", 2)
    plays = (*PLAYS, FUNCTIONAL, REVIEW, keeping, reader)
    answers = {"Shall this be sent?": (InputResponse(text="be warmer"), InputResponse(text="yes"))}
    scripted = [Case(play.graph, play.request(), answers) for play in plays]
    policies = [replace(_by_policy(play), answers=answers) for play in plays]
    supervised = Case(SUPERVISOR.graph, SUPERVISOR.request())
    remembering = Case(REMEMBERING.graph, REMEMBERING.request())
    sliced = replace(remembering, slice_turns=1)
    return [
        *scripted,
        *map(_at_exit, scripted),
        *policies,
        *(_at_exit(case) for case in policies if case.name.startswith((REACT.graph, SUPERVISOR.graph))),
        _renamed(_turned(supervised, 3), "turn limit"),
        _wished(supervised, "finish", 2),
        _wished(supervised, "cancel", 2),
        remembering,
        _renamed(sliced, "slices of a turn"),
        _renamed(_at_exit(sliced), "slices of a turn"),
    ]


QUOTED_ANSWER = 'The sources say "A Fresnel lens is a lens cut into rings". It still stands.'
