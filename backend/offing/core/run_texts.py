"""What the platform says about runs and their reports in English, with a code for each text."""

from offing.core.coded_text import TextCatalog

RUN_TEXTS = TextCatalog(
    {
        # What a run waits for.
        "wait_resume": "a person to resume it",
        "wait_earlier_runs": "the earlier runs of its thread",
        "wait_start_time": "its start time",
        "wait_answer": "a person's answer",
        "wait_answers": "{count} answers of a person",
        "wait_child": "a child run",
        "wait_children": "{count} child runs",
        "wait_answer_and_child": "a person's answer and a child run",
        "wait_answers_and_child": "{count} answers of a person and a child run",
        "wait_answer_and_children": "a person's answer and {children} child runs",
        "wait_answers_and_children": "{count} answers of a person and {children} child runs",
        "wait_worker": "a worker with {graph} {version}",
        "wait_worker_because": "a worker with {graph} {version}; with the version installed here, {reason}",
        # Why a run failed.
        "workers_stopped": "{count} workers in a row stopped responding during this run.",
        "no_person_to_ask": "The graph made an input request, but a rollout has no person to ask.",
        # What a run asks.
        "ask_tool": "May the run use {tool}?",
        "ask_tools": "May the run make these {count} tool calls?",
        "ask_to_continue": "The run asks whether to continue.",
        "ask_for_plan": "Is this the plan to follow?",
        "asked_because": "{call}\n\nAsked because of {reason}",
        # Who wrote a report.
        "author_extractive": "the extractive engine",
        "author_graph": "the graph's own writer, without a model",
        # Who judged the claims of a report.
        "judged_by_rules": "The verdicts are given by rules, which compare each sentence with its quotes.",
        "checker_failed": "The verdicts are given by rules alone. The checker judged no sentence: {reason}",
        "judged_by_checker": "The verdicts are given by rules and by {checker}, which judged {judged} of {claims} "
        "sentences.",
        "judged_in_part": "The verdicts are given by rules and by {checker}, which judged {judged} of {claims} "
        "sentences. It did not judge the others: {reason}",
        "judged_unverified": "The verdicts are given by rules and by {checker}, which judged {judged} of {claims} "
        "sentences. Contradictions or conflicts that it named in words that no passage contains: {unverified}.",
        "judged_in_part_unverified": "The verdicts are given by rules and by {checker}, which judged {judged} of "
        "{claims} sentences. It did not judge the others: {reason} Contradictions or conflicts that it named in words "
        "that no passage contains: {unverified}.",
        # Who looked for conflicts between sources.
        "conflicts_one_source": "Conflicts between sources were not looked for, because fewer than two sources are "
        "cited.",
        "conflicts_by_rules": "Conflicts between sources were looked for only by rules, which find two quotes that say "
        "the same with another number or date.",
        "conflicts_by_rules_none": "Conflicts between sources were looked for only by rules, which find two quotes "
        "that say the same with another number or date. None was found.",
        "conflicts_by_checker": "Conflicts between sources were looked for by {checker}, and by rules, which find two "
        "quotes that say the same with another number or date.",
        "conflicts_by_checker_none": "Conflicts between sources were looked for by {checker}, and by rules, which find "
        "two quotes that say the same with another number or date. None was found.",
        "conflicts_in_groups": "Conflicts between sources were looked for by {checker} within each of {groups} groups "
        "of sentences, and by rules, which find two quotes that say the same with another number or date.",
        "conflicts_in_groups_none": "Conflicts between sources were looked for by {checker} within each of {groups} "
        "groups of sentences, and by rules, which find two quotes that say the same with another number or date. None "
        "was found.",
    }
)
"""Texts of waiting runs, failed runs, input requests and reports."""
