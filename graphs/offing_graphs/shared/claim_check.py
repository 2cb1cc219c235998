"""The checker: it judges the claims of a draft by the passages that they cite, before the report is submitted.

A run has a checker only if an engine is named for it. It reads each cited quote with the text around it, as many claims
per call as fit the window of its model. Its answers are verified when the report is recorded
(`offing.core.claim_check`); a checker that fails leaves the verdicts of the rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    ClaimPassage,
    ClaimToJudge,
    ClaimVerdict,
    DraftCitation,
    DraftClaimCheck,
    DraftConflict,
    DraftJudgment,
    EngineFailure,
    Headline,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StepKind,
    StopReason,
    merge_passages,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.shared.claim_lines import (
    TEXT_FORMAT_RULE,
    CheckerOutput,
    FoundConflict,
    JudgedClaim,
    parse_lines,
    render_lines,
)
from offing_graphs.shared.fitted_calls import call_fitted, find_context_tokens
from offing_graphs.shared.prompt_parts import build_prompt
from offing_graphs.shared.prompt_room import Allowance, compute_room
from offing_graphs.shared.schemas import FrozenModel, RoleInput
from offing_graphs.shared.stop_reasons import NO_MODEL_REASONS
from offing_graphs.shared.tagged_text import build_text_format

MAX_CLAIMS = 200
"""Maximum number of claims of a report that are judged. The first ones are."""
MAX_GROUP_CLAIMS = 24
"""Maximum number of claims per call, so that the answer stays short."""
MAX_PROMPT_CHARS = 60_000
"""Maximum number of characters of claims and passages per call, where the window of the model is unknown."""
MAX_PROMPT_TOKENS = 20_000
"""Maximum estimated tokens of claims and passages per call."""
ATTEMPTS = 2
"""Times that a claim is shown to the checker until it is judged."""
QUOTES_ONLY = "The report consists of quotes and was not given to the checker."

SYSTEM_PROMPT = """You check the sentences of a research report against the passages that they cite. You did not write \
the report, and you use nothing but the passages. For each listed sentence say one of:
- supported: the cited passages state all of it.
- partly: they state a part of it, or something weaker.
- contradicted: a cited passage states something that cannot be true together with the sentence. Copy the words that \
contradict it, letter by letter.
- not found: the cited passages do not state it.
Then list where passages of different sources disagree on the same matter: other numbers, dates or statements about \
the same thing at the same time. Copy the words of both. Different subjects, years or units are no conflict."""


class PassageExcerpt(FrozenModel):
    """The text around the quotes that sentences take from a passage."""

    id: str
    title: str
    heading: str = ""
    start: int
    text: str


class ListedClaim(FrozenModel):
    """A sentence to judge, with the passages that it cites."""

    id: str
    text: str
    passages: tuple[PassageExcerpt, ...]


class CheckerInput(RoleInput):
    """Claims to judge. Those that do not fit the window are not shown, the last ones first."""

    question: str
    claims: tuple[ListedClaim, ...] = Field(min_length=1)


@dataclass(slots=True)
class _Collected:
    """What the checker has answered."""

    judgments: dict[str, JudgedClaim]
    conflicts: list[FoundConflict]
    replies: list[int]
    failure: str = ""


async def check_claims(ctx: RunContext, draft: ReportDraft, reason: StopReason) -> DraftClaimCheck | None:
    """Ask the checker about the claims of a draft. `None` means that the run has no checker, or nothing to check."""
    if not ctx.has_engine(CHECKER):
        return None
    claims = await ctx.list_claims(draft)
    if not claims:
        return None
    if reason in NO_MODEL_REASONS:
        return DraftClaimCheck(claims=len(claims), failure=f"The run ended: {reason.replace('_', ' ')}.")
    return _build_check(len(claims), await _judge_all(ctx, claims[:MAX_CLAIMS]))


async def submit_quote_report(ctx: RunContext, draft: ReportDraft, reason: StopReason) -> None:
    """Submit a report that was made without a model. Its sentences are quotes, so the checker is not asked."""
    claims = len(await ctx.list_claims(draft)) if ctx.has_engine(CHECKER) else 0
    check = DraftClaimCheck(claims=claims, failure=QUOTES_ONLY) if claims else None
    await ctx.submit_report(draft, reason, check=check)


async def _judge_all(ctx: RunContext, claims: Sequence[ClaimToJudge]) -> _Collected:
    """Ask about all claims, group by group, until they are judged, were shown twice, or a call fails."""
    collected, listed = _Collected({}, [], []), [_list_claim(claim) for claim in claims]
    for _ in range(ATTEMPTS):
        waiting = [claim for claim in listed if claim.id not in collected.judgments]
        while waiting and not collected.failure:
            waiting = waiting[await _judge_group(ctx, waiting, collected) :]
    return collected


async def _judge_group(ctx: RunContext, waiting: Sequence[ListedClaim], collected: _Collected) -> int:
    """Ask about the first claims that fit one prompt, and return their number."""
    allowance = _compute_allowance(await find_context_tokens(ctx, CHECKER.name), ctx.run.question)
    group = select_fitting(waiting, allowance)
    reply = await call_fitted(ctx, CHECKER, CheckerInput(question=ctx.run.question, claims=group))
    if isinstance(reply, EngineFailure):
        collected.failure = reply.message
        return len(group)
    group_ids = {claim.id for claim in group}
    collected.replies.append(reply.seq)
    collected.conflicts.extend(reply.output.conflicts)
    for one in reply.output.judgments:
        if one.id in group_ids:
            collected.judgments.setdefault(one.id, one)
    return len(group)


def _build_check(claims: int, collected: _Collected) -> DraftClaimCheck:
    missing = min(claims, MAX_CLAIMS) - len(collected.judgments)
    failure = collected.failure or (f"It left out {missing} of the sentences." if missing else "")
    if claims > MAX_CLAIMS:
        failure = " ".join(filter(None, (failure, f"It is asked about the first {MAX_CLAIMS} sentences.")))
    return DraftClaimCheck(
        claims=claims,
        judgments=tuple(map(_to_judgment, collected.judgments.values())),
        conflicts=tuple(map(_to_conflict, collected.conflicts)),
        replies=tuple(collected.replies),
        failure=failure,
    )


def select_fitting(claims: Sequence[ListedClaim], allowance: Allowance) -> tuple[ListedClaim, ...]:
    """Return the first claims that fit with their passages, and always the first one."""
    fitting = list(claims[:MAX_GROUP_CLAIMS])
    while len(fitting) > 1 and sum(map(allowance.measure, _render_claims(fitting))) > allowance.max_size:
        fitting.pop()
    return tuple(fitting)


def render_prompt(inputs: CheckerInput) -> tuple[Message, ...]:
    allowance = _compute_allowance(inputs.context_tokens, inputs.question)
    parts = _render_claims(select_fitting(inputs.claims, allowance))
    return build_prompt(SYSTEM_PROMPT, (f"The question:\n{inputs.question}", *parts))


def _compute_allowance(context_tokens: int | None, question: str) -> Allowance:
    fixed = (SYSTEM_PROMPT, UNTRUSTED_BLOCK_RULE, TEXT_FORMAT_RULE, question)
    return compute_room(context_tokens, CheckerOutput, fixed).allow(MAX_PROMPT_CHARS, MAX_PROMPT_TOKENS)


def _render_claims(claims: Sequence[ListedClaim]) -> list[str]:
    """Render the passages that claims cite, each once, and then the claims."""
    excerpts = [ClaimPassage(p.id, p.title, p.heading, p.start, p.text) for claim in claims for p in claim.passages]
    passages = [_render_excerpt(one) for one in merge_passages(excerpts)]
    lines = "\n".join(_render_claim(claim) for claim in claims)
    return [*passages, f"The sentences to judge, each with the ids of the passages that it cites:\n\n{lines}"]


def _render_excerpt(one: ClaimPassage) -> str:
    location = f"{one.title} \u203a {one.heading}" if one.heading else one.title
    return f"Passage {one.evidence}\n" + wrap_untrusted(f"{shorten_line(location)}\n{one.text}")


def _render_claim(claim: ListedClaim) -> str:
    ids = ", ".join(dict.fromkeys(p.id for p in claim.passages))
    return f"{claim.id} ({ids}): {' '.join(claim.text.split())}"


def _render_headline(output: CheckerOutput) -> Headline:
    counts = [(sum(one.verdict == v for one in output.judgments), v.replace("_", " ")) for v in ClaimVerdict]
    title = ", ".join(f"{count} {name}" for count, name in counts if count) or "no sentence judged"
    conflicts = len(output.conflicts)
    return Headline(title, f"{conflicts} conflicts named" if conflicts else "")


def _list_claim(claim: ClaimToJudge) -> ListedClaim:
    passages = tuple(
        PassageExcerpt(id=p.evidence, title=p.title, heading=p.heading, start=p.start, text=p.text)
        for p in claim.passages
    )
    return ListedClaim(id=claim.id, text=claim.text, passages=passages)


def _to_judgment(one: JudgedClaim) -> DraftJudgment:
    return DraftJudgment(
        sentence=one.id, verdict=ClaimVerdict(one.verdict), evidence=one.passage, reason=one.why, quote=one.quote
    )


def _to_conflict(one: FoundConflict) -> DraftConflict:
    first = DraftCitation(evidence=one.first_passage, quote=one.first_quote)
    second = DraftCitation(evidence=one.second_passage, quote=one.second_quote)
    return DraftConflict(matter=one.matter, first=first, second=second)


CHECKER = Role(
    "checker",
    CheckerInput,
    CheckerOutput,
    render_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="check",
    prompt_formats=(build_text_format(render_prompt, TEXT_FORMAT_RULE, parse_lines, render_lines),),
    default_format="text",
)
