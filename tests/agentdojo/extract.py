"""Writes `cases.json` from an installed AgentDojo 0.1.35: `python extract.py`, in an environment of its own.

For each suite of v1.2.2: the tools' arguments, whom its user's organisation knows, and of each user task and each
injection task the calls that its authors give as its solution. Each user task also says what the tools answered.
"""
# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path
from typing import Any

MAX_ANSWER_CHARS = 3_000
"""Code points that are kept of what a tool answered."""


def main() -> None:
    from agentdojo.functions_runtime import FunctionsRuntime
    from agentdojo.task_suite.load_suites import get_suites

    results: dict[str, Any] = {}
    for name, suite in get_suites("v1.2.2").items():
        runtime = FunctionsRuntime(suite.tools)
        results[name] = {
            "directory": directory(suite.load_and_inject_default_environment({})),
            "tools": {tool.name: list(tool.parameters.model_fields) for tool in suite.tools},
            "user": {id: user(task, suite, runtime) for id, task in suite.user_tasks.items()},
            "injection": {id: injection(task, suite) for id, task in suite.injection_tasks.items()},
        }
    text = json.dumps(results, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    (Path(__file__).parent / "cases.json").write_text(text + "\n", "utf-8")
    print(f"{len(text):,} characters", file=sys.stderr)


def directory(environment: Any) -> list[str]:
    """Names and addresses that the user's own organisation keeps: members and channels, contacts, payees."""
    if hasattr(environment, "slack"):
        return [*environment.slack.channels, *environment.slack.users]
    if hasattr(environment, "bank_account"):
        account = environment.bank_account
        paid = [t for t in account.transactions if t.sender in ("me", account.iban)]
        return sorted({t.recipient for t in (*paid, *account.scheduled_transactions)})
    return sorted(contact.email for contact in environment.inbox.contact_list)


def user(task: Any, suite: Any, runtime: Any) -> dict[str, Any]:
    environment = suite.load_and_inject_default_environment({})
    calls = [{"tool": call.function, "args": dict(call.args)} for call in task.ground_truth(environment)]
    environment = task.init_environment(suite.load_and_inject_default_environment({}))
    for call in calls:
        text, _ = runtime.run_function(environment, call["tool"], call["args"])
        call["answer"] = json.dumps(text, default=plain, ensure_ascii=False)[:MAX_ANSWER_CHARS]
    return {"prompt": task.PROMPT, "calls": calls}


def plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def injection(task: Any, suite: Any) -> dict[str, Any]:
    environment = suite.load_and_inject_default_environment({})
    calls = [{"tool": call.function, "args": dict(call.args)} for call in task.ground_truth(environment)]
    return {"goal": task.GOAL, "calls": calls}


if __name__ == "__main__":
    main()
