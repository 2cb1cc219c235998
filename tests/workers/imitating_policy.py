"""A small policy that has learned to write what rules wrote, so that real graphs run on a real engine in a test.

Imports torch when it is called.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offing.core.model import Message

Example = tuple[tuple[Message, ...], str]
"""A prompt and its completion."""

BATCH = 16

RATE = 5e-3


def train_policy(folder: Path, examples: Sequence[Example], *, steps: int, seed: int = 0) -> None:
    """Makes `folder` a policy of words that imitates `examples` after the given number of steps of training.

    On one thread: more wait for one another by spinning, a hundred times as long where the machine is busy.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from offing_engine.random_policy import create_random_policy

    texts = [m.text for messages, _ in examples for m in messages] + [text for _, text in examples]
    create_random_policy(folder, sorted({word for text in texts for word in text.split()}), seed=seed)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    rows = [_row(tokenizer, *example) for example in examples]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _train(torch, model, rows, steps, seed)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)


def _train(torch: Any, model: Any, rows: Sequence[tuple[list[int], int]], steps: int, seed: int) -> None:
    """The rate rises, and falls to nothing, which takes a third off the loss of as many steps at a constant one."""
    optimizer, draw = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0), random.Random(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 20) * (1 - step / steps)
        ids, labels, known = _batch(torch, draw.choices(rows, k=BATCH))
        loss = model(input_ids=ids, attention_mask=known, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def _row(tokenizer: Any, messages: Sequence[Message], completion: str) -> tuple[list[int], int]:
    """Ids, and how many of them are the prompt's."""
    lines = [{"role": m.role, "content": m.text} for m in messages]
    text = tokenizer.apply_chat_template(lines, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return [*prompt, *answer, tokenizer.eos_token_id], len(prompt)


def _batch(torch: Any, rows: Sequence[tuple[list[int], int]]) -> tuple[Any, Any, Any]:
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    labels = torch.full((len(rows), longest), -100)
    known = torch.zeros(len(rows), longest, dtype=torch.long)
    for n, (row, prompt) in enumerate(rows):
        ids[n, : len(row)] = torch.tensor(row)
        labels[n, prompt : len(row)] = torch.tensor(row[prompt:])
        known[n, : len(row)] = 1
    return ids, labels, known
