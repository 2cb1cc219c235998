"""What a turn's ids decode to, one by one, for people to read; nothing is ever trained from it.

The policy version's own tokenizer is used where its files lie on this machine, and only when its pieces are the text
that the flow used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from offing.core.episode import Talk


@dataclass(frozen=True, slots=True)
class Pieces:
    """One text an id."""

    prompt: tuple[str, ...]
    completion: tuple[str, ...]


def pieces_of(turn: Talk, place: str) -> Pieces | None:
    """A turn's ids as texts. None: there are no ids, no tokenizer in the folder `place`, or it is another one."""
    file = Path(place) / "tokenizer.json"
    if turn.tokens is None or not file.is_file():
        return None
    tokenizer = _tokenizer(str(file), file.stat().st_mtime_ns)
    said = tokenizer.decode(list(turn.tokens.completion), skip_special_tokens=True)
    if said != turn.completion:
        return None
    return Pieces(_decoded(tokenizer, turn.tokens.prompt), _decoded(tokenizer, turn.tokens.completion))


def _decoded(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Each id as what it adds after the one before: alone, a word loses the space in front of it."""
    before: list[list[int]] = [[], *([id] for id in ids)]
    return tuple(_added(tokenizer, first, id) for first, id in zip(before, ids, strict=False))


def _added(tokenizer: Any, before: list[int], id: int) -> str:
    """What `id` decodes to after `before`; alone, where the two run into one character."""
    was = tokenizer.decode(before, skip_special_tokens=False)
    both = tokenizer.decode([*before, id], skip_special_tokens=False)
    return both[len(was) :] if both.startswith(was) else tokenizer.decode([id], skip_special_tokens=False)


@lru_cache(maxsize=4)
def _tokenizer(file: str, changed: int) -> Any:
    """`changed`: so that another file of the same name is read again."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(file)
