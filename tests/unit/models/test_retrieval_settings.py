"""The settings of an embedding model and a reranker: what none of them means, and which are rejected."""

from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.models.embedding_models import open_embedder, open_reranker
from offing.settings import Settings, load_settings


def key(**settings: object) -> str:
    embedder = open_embedder(Settings.model_validate({"embedding_model": "openai/m"} | settings))
    assert embedder is not None
    return embedder.key


def test_without_a_model_there_is_none() -> None:
    assert open_embedder(Settings()) is None
    assert open_reranker(Settings()) is None


def test_a_key_names_what_makes_vectors_comparable_and_nothing_else() -> None:
    assert key() == "openai/m"
    assert key(embedding_api_base="http://10.0.0.5:80/v1", embedding_batch_size=7) == "openai/m"
    variants = [
        key(),
        key(embedding_model="openai/n"),
        key(embedding_dimensions=64),
        key(embedding_query_prefix="x"),
        key(embedding_passage_prefix="x"),
        key(embedding_query_prefix='x" passage="y'),
        key(embedding_query_prefix="x", embedding_passage_prefix="y"),
    ]
    assert len(set(variants)) == len(variants)


@pytest.mark.parametrize("kind", ["embedding", "rerank"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"MODEL": "bge-m3"}, r"_MODEL: 'bge-m3' does not name a provider and a model\. Use provider/model"),
        ({"MODEL": "/bge-m3"}, "_MODEL: '/bge-m3' does not name"),
        ({"API_BASE": "http://127.0.0.1:1/v1"}, r"_API_BASE: is set without a model\. Set OFFING_[A-Z]+_MODEL"),
    ],
)
def test_settings_that_cannot_work_are_named(
    kind: str, values: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"OFFING_{kind.upper()}_{name}", value)
    with pytest.raises(InvalidInput, match=f"OFFING_{kind.upper()}{message}"):
        load_settings(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "value"), [("DIMENSIONS", "0"), ("DIMENSIONS", "many"), ("BATCH_SIZE", "0"), ("BATCH_SIZE", "100000")]
)
def test_numbers_have_limits(name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"OFFING_EMBEDDING_{name}", value)
    with pytest.raises(InvalidInput, match=f"^OFFING_EMBEDDING_{name}: "):
        load_settings(tmp_path / "none")


def test_the_space_at_the_end_of_a_prefix_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFING_EMBEDDING_QUERY_PREFIX", "query: ")
    (tmp_path / "env").write_text("OFFING_EMBEDDING_MODEL=openai/m\nOFFING_EMBEDDING_PASSAGE_PREFIX='passage: '\n")
    settings = load_settings(tmp_path / "env")
    assert (settings.embedding_query_prefix, settings.embedding_passage_prefix) == ("query: ", "passage: ")


@pytest.mark.parametrize("model", ["openai/https://elsewhere.example/x", "github_copilot/x", "openai/../x"])
def test_models_that_engines_reject_are_rejected_here(model: str) -> None:
    with pytest.raises(InvalidInput, match=r"^OFFING_EMBEDDING_MODEL: "):
        open_embedder(Settings(embedding_model=model))
    provider = "infinity" if model.startswith("openai") else "github_copilot"
    with pytest.raises(InvalidInput, match=r"^OFFING_RERANK_MODEL: "):
        open_reranker(Settings(rerank_model=f"{provider}/{model.partition('/')[2]}"))


@pytest.mark.parametrize("base", ["127.0.0.1:11434", "http://user:key@host", "file:///etc/passwd"])
def test_an_address_that_is_none_is_rejected(base: str) -> None:
    with pytest.raises(InvalidInput, match=r"^OFFING_EMBEDDING_API_BASE: must be an http"):
        open_embedder(Settings(embedding_model="openai/m", embedding_api_base=base))
    with pytest.raises(InvalidInput, match=r"^OFFING_RERANK_API_BASE: must be an http"):
        open_reranker(Settings(rerank_model="infinity/m", rerank_api_base=base))
