"""Decode the token ids of a role call one by one for people to read.

The result is never used for training.

The tokenizer of the policy version is used if its files are on this machine, and only if the decoded texts
together are the text that the graph used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from offing.core.trajectory_records import RoleCallRecord


@dataclass(frozen=True, slots=True)
class TokenTexts:
    """The text of each token id."""

    prompt: tuple[str, ...]
    completion: tuple[str, ...]


def decode_tokens(role_call: RoleCallRecord, policy_dir: str) -> TokenTexts | None:
    """Return the texts of a role call's token ids.

    `None` if it has no ids, or if the folder `policy_dir` has no tokenizer or a different one.
    """
    file = Path(policy_dir) / "tokenizer.json"
    if role_call.tokens is None or not file.is_file():
        return None
    tokenizer = _load_tokenizer(str(file), file.stat().st_mtime_ns)
    completion = tokenizer.decode(list(role_call.tokens.completion_ids), skip_special_tokens=True)
    if completion != role_call.completion:
        return None
    return TokenTexts(
        _decode_each(tokenizer, role_call.tokens.prompt_ids), _decode_each(tokenizer, role_call.tokens.completion_ids)
    )


def _decode_each(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Return for each id the text that it adds to the ids before it.

    Decoded alone, a word would lose its leading space.
    """
    before: list[list[int]] = [[], *([id] for id in ids)]
    return tuple(_decode_after(tokenizer, first, id) for first, id in zip(before, ids, strict=False))


def _decode_after(tokenizer: Any, previous_ids: list[int], token_id: int) -> str:
    """Return what `token_id` decodes to after `previous_ids`, or alone if both form a single character."""
    was = tokenizer.decode(previous_ids, skip_special_tokens=False)
    both = tokenizer.decode([*previous_ids, token_id], skip_special_tokens=False)
    return both[len(was) :] if both.startswith(was) else tokenizer.decode([token_id], skip_special_tokens=False)


@lru_cache(maxsize=4)
def _load_tokenizer(file: str, modified_ns: int) -> Any:
    """Load a tokenizer. `modified_ns` is part of the cache key, so that a changed file is read again."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(file)
