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
    said = "".join(tokenizer.decode([id], skip_special_tokens=True) for id in turn.tokens.completion)
    if said != turn.completion:
        return None
    return Pieces(_decoded(tokenizer, turn.tokens.prompt), _decoded(tokenizer, turn.tokens.completion))


def _decoded(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(tokenizer.decode([id], skip_special_tokens=False) for id in ids)


@lru_cache(maxsize=4)
def _tokenizer(file: str, changed: int) -> Any:
    """`changed`: so that another file of the same name is read again."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(file)
