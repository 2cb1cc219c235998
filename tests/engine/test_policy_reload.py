"""A folder of policies that versions are added to while the engine serves."""

import shutil
from pathlib import Path

import pytest
import torch

from offing_engine.process import load_added
from offing_engine.scheduler import EngineScheduler, SchedulerLimits
from tests.engine.engine_server import serving


def test_a_version_that_appears_is_loaded_one_that_was_unloaded_stays_away_and_a_broken_one_is_told_once(
    policies: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EngineScheduler(torch.device("cpu"), SchedulerLimits(max_rows=4))
    seen: dict[str, float] = {}
    try:
        shutil.copytree(policies["words@1"], tmp_path / "words@1")
        load_added(engine, tmp_path, seen)
        assert list(engine.policies) == ["words@1"]
        (tmp_path / "broken@1").mkdir()
        (tmp_path / ".export-1").mkdir()
        shutil.copytree(policies["words@1"], tmp_path / "words@2")
        for _ in range(2):
            load_added(engine, tmp_path, seen)
        assert list(engine.policies) == ["words@1", "words@2"]
        assert caplog.text.count("broken@1 cannot be served") == 1
        engine.unload("words@2")
        load_added(engine, tmp_path, seen)
        assert list(engine.policies) == ["words@1"]
    finally:
        engine.stop()


def test_an_engine_starts_although_a_folder_of_policies_holds_a_broken_one(
    policies: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(policies["words@1"], tmp_path / "words@1")
    shutil.copytree(policies["words@2"], tmp_path / "words@2")
    (tmp_path / "words@2" / "model.safetensors").write_bytes(b"cut short")
    with serving({}, "--policy-dir", str(tmp_path)) as engine:
        listed = engine.client.get("/v1/models").json()["data"]
        assert [one["id"] for one in listed] == ["words@1"]
        assert "words@2 cannot be served" in engine.log.read_text()
