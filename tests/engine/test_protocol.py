"""The token-level wire, as a client sees it on the socket."""

import json
import math
import os
import shutil
import signal
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine.adapters import adapter
from tests.engine.engine_server import Served, serving
from tests.ports import free_port

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "system", "content": "w0"}, {"role": "user", "content": "w1 w2 w3"}]


def completion_body(**more: Any) -> dict[str, Any]:
    common = {"logprobs": True, "return_token_ids": True, "include_stop_str_in_output": True, "max_tokens": 12}
    return {"model": "words@1", "messages": MESSAGES, "seed": 7, **common, **more}


def request_completion(served: Served, **more: Any) -> dict[str, Any]:
    response = served.client.post(CHAT, json=completion_body(**more))
    assert response.status_code == 200, response.text
    return response.json()


def seeded(served: Served, seed: int) -> dict[str, Any]:
    return request_completion(served, seed=seed)


def of_model(served: Served, model: str) -> dict[str, Any]:
    return request_completion(served, model=model)


def request_error(served: Served, path: str = CHAT, **more: Any) -> tuple[int, dict[str, Any]]:
    response = served.client.post(path, json=completion_body(**more))
    return response.status_code, response.json()["error"]


def score(served: Served, model: str, ids: list[int], **more: Any) -> list[float]:
    body = {"model": model, "prompt": ids, "max_tokens": 0, "prompt_logprobs": 0, **more}
    entries = served.client.post(COMPLETIONS, json=body).raise_for_status().json()["choices"][0]["prompt_logprobs"]
    assert entries[0] is None
    return [entry[str(id)]["logprob"] for id, entry in zip(ids[1:], entries[1:], strict=True)]


def test_an_answer_carries_ids_log_probabilities_entropy_version_and_hashes(served: Served):
    answer = request_completion(served)
    choice = answer["choices"][0]
    count = len(choice["token_ids"])
    assert count == len(choice["token_entropy"]) == len(choice["logprobs"]["content"])
    assert answer["usage"]["completion_tokens"] == count
    assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
    assert answer["model"] == "words@1"
    (card,) = [one for one in served.client.get("/v1/models").json()["data"] if one["id"] == "words@1"]
    for name in ("weights_sha256", "tokenizer_sha256", "template_sha256"):
        assert len(answer[name]) == 64
        assert answer[name] == card[name]
    assert answer["system_fingerprint"].startswith("offing-engine ")


def test_the_text_is_what_its_tokens_bytes_join_to(served: Served):
    for model in ("words@1", "bytes@1"):
        choice = request_completion(served, model=model, max_tokens=50)["choices"][0]
        joined = b"".join(bytes(entry["bytes"]) for entry in choice["logprobs"]["content"])
        assert choice["message"]["content"] == joined.decode("utf-8", "replace")


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.6}, {"top_k": 5}, {"top_p": 0.5, "temperature": 1.4}])
def test_scoring_the_drawn_ids_gives_the_same_log_probabilities(served: Served, sampling: dict[str, Any]):
    answer = request_completion(served, **sampling)
    drawn = answer["choices"][0]["token_ids"]
    stored = [entry["logprob"] for entry in answer["choices"][0]["logprobs"]["content"]]
    scored = score(served, "words@1", answer["prompt_token_ids"] + drawn, **sampling)
    assert scored[-len(drawn) :] == pytest.approx(stored, abs=1e-4)


def test_another_version_scores_the_same_ids_differently(served: Served):
    answer = request_completion(served)
    ids = answer["prompt_token_ids"] + answer["choices"][0]["token_ids"]
    assert score(served, "words@1", ids) != pytest.approx(score(served, "words@2", ids), abs=1e-2)


def test_a_seed_gives_the_same_answer_in_any_company(served: Served):
    alone = [request_completion(served, seed=n)["choices"][0]["token_ids"] for n in range(24)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(partial(seeded, served), range(24)))
    assert [answer["choices"][0]["token_ids"] for answer in answers] == alone
    assert len({tuple(ids) for ids in alone}) > 20


def test_versions_answer_side_by_side_each_with_its_own_weights(served: Served):
    names = ["words@1", "words@2", "bytes@1"] * 6
    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(partial(of_model, served), names))
    for name, answer in zip(names, answers, strict=True):
        ids, drawn = answer["prompt_token_ids"], answer["choices"][0]["token_ids"]
        stored = [entry["logprob"] for entry in answer["choices"][0]["logprobs"]["content"]]
        assert score(served, name, ids + drawn)[-len(drawn) :] == pytest.approx(stored, abs=1e-4)


def test_a_version_that_is_absent_is_rejected(served: Served):
    for path in (CHAT, COMPLETIONS, "/tokenize"):
        code, error = request_error(served, path, model="words@3", prompt="w1")
        assert code == 404
        assert error["param"] == "model"
        assert "words@3" in error["message"]


def test_a_turn_continues_from_the_very_tokens_of_the_one_before(served: Served):
    first = request_completion(served)
    ids = first["prompt_token_ids"] + first["choices"][0]["token_ids"]
    lines = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
    messages = [*MESSAGES, lines, {"role": "user", "content": "w5"}]
    second = request_completion(served, messages=messages, offing_prefix={"token_ids": ids, "message_count": 3})
    assert second["prefix_used"] is True
    assert second["prompt_token_ids"][: len(ids)] == ids
    assert len(second["prompt_token_ids"]) > len(ids)
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == len(ids) - 1
    drawn = second["choices"][0]["token_ids"]
    stored = [entry["logprob"] for entry in second["choices"][0]["logprobs"]["content"]]
    assert score(served, "words@1", second["prompt_token_ids"] + drawn)[-len(drawn) :] == pytest.approx(
        stored, abs=1e-4
    )
    third = request_completion(served, messages=messages, offing_prefix={"token_ids": ids, "message_count": 2})
    assert third["prefix_used"] is False


def test_a_stop_string_ends_the_answer_and_is_shown_only_when_asked_for(served: Served):
    whole = request_completion(served, model="bytes@1", max_tokens=200)["choices"][0]["message"]["content"]
    stop = next(whole[n : n + 2] for n in range(5, len(whole)) if whole[n : n + 2].isascii())
    stored = request_completion(served, model="bytes@1", max_tokens=200, stop=[stop])["choices"][0]
    cut = request_completion(served, model="bytes@1", max_tokens=200, stop=stop, include_stop_str_in_output=False)[
        "choices"
    ][0]
    assert stored["finish_reason"] == cut["finish_reason"] == "stop"
    assert stored["stop_reason"] == stop
    assert stored["message"]["content"] == cut["message"]["content"] + stop
    assert stored["token_ids"] == cut["token_ids"]


def test_greedy_answers_are_certain(served: Served):
    choice = request_completion(served, temperature=0)["choices"][0]
    assert {entry["logprob"] for entry in choice["logprobs"]["content"]} == {0.0}
    assert set(choice["token_entropy"]) == {0.0}


def test_the_entropy_of_near_uniform_weights_is_near_that_of_the_vocabulary(served: Served):
    vocabulary = 46
    assert request_completion(served)["choices"][0]["token_entropy"][0] == pytest.approx(math.log(vocabulary), abs=0.2)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"max_tokens": 40_000}, "max_tokens"),
        ({"messages": [{"role": "user", "content": "w1 " * 33_000}]}, "messages"),
        ({"messages": []}, "messages"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 2}, "n"),
        ({"stream": True}, "stream"),
        ({"repetition_penalty": 1.2}, "repetition_penalty"),
        ({"offing_prefix": {"token_ids": [9_999], "message_count": 1}}, "offing_prefix.token_ids"),
    ],
)
def test_what_cannot_be_used_is_a_clear_error(served: Served, more: dict[str, Any], field: str):
    code, error = request_error(served, **more)
    assert code == 400
    assert error["param"] == field
    assert field in error["message"]


def test_tokenize_gives_what_a_chat_request_would_send(served: Served):
    body = served.client.post("/tokenize", json={"model": "words@1", "messages": MESSAGES}).json()
    assert body["tokens"] == request_completion(served)["prompt_token_ids"]
    assert body["count"] == len(body["tokens"])
    text = served.client.post("/tokenize", json={"model": "words@1", "prompt": "w1 w2"}).json()
    assert text["count"] == 2


def test_versions_come_and_go_and_never_change(served: Served, policies: dict[str, Path]):
    def post(route: str, **body: Any) -> httpx.Response:
        return served.client.post(route, json=body)

    assert post("/v1/load_policy", name="words@9", path=str(policies["words@2"])).status_code == 200
    assert post("/v1/load_policy", name="words@9", path=str(policies["words@2"])).status_code == 200
    taken = post("/v1/load_policy", name="words@9", path=str(policies["words@1"]))
    assert taken.status_code == 409
    assert (
        request_completion(served, model="words@9")["weights_sha256"]
        == request_completion(served, model="words@2")["weights_sha256"]
    )
    assert post("/v1/unload_policy", name="words@9").status_code == 200
    assert request_error(served, model="words@9")[0] == 404
    assert post("/v1/unload_policy", name="words@9").status_code == 404
    assert post("/v1/load_policy", name="words", path=str(policies["words@1"])).json()["error"]["param"] == "name"
    assert post("/v1/load_policy", name="words@9", path="/nowhere").json()["error"]["param"] == "path"


def test_an_adapter_without_its_base_is_rejected(served: Served, tmp_path: Path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/else"}')
    (folder / "adapter_model.safetensors").write_bytes(b"")
    response = served.client.post("/v1/load_lora_adapter", json={"lora_name": "words@8", "lora_path": str(folder)})
    assert response.status_code == 400
    assert "somebody/else" in response.json()["error"]["message"]


def test_the_socket_is_for_its_owner_alone(served: Served):
    assert stat.S_IMODE(os.stat(served.socket).st_mode) == 0o600


def requested(served: Served, body: dict[str, Any]) -> HTTPConnection:
    """A connection of its own, on which a whole request was sent."""
    connection = HTTPConnection("engine")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(60)
    connection.sock.connect(str(served.socket))
    connection.request("POST", CHAT, json.dumps(body), {"content-type": "application/json"})
    return connection


def test_sigterm_lets_requests_finish_and_takes_no_more(policies: dict[str, Path]):
    with serving({"bytes@1": policies["bytes@1"]}) as engine:
        with closing(requested(engine, completion_body(model="bytes@1", max_tokens=300))) as long:
            assert engine.client.get("/health").status_code == 200  # it has read what was sent before
            os.kill(engine.pid, signal.SIGTERM)
            answer = long.getresponse()
            assert answer.status == 200
            assert json.loads(answer.read())["choices"][0]["token_ids"]
        deadline = time.monotonic() + 20
        while engine.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not engine.socket.exists()


def test_a_port_wants_the_bearer_token(policies: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    from offing.core.errors import InvalidInput
    from offing_engine.process import ServeConfig, serve_engine

    with pytest.raises(InvalidInput, match="OFFING_ENGINE_KEY"):
        serve_engine(ServeConfig({}, None, port=0))
    with pytest.raises(InvalidInput, match="--host"):
        serve_engine(ServeConfig({}, None, host="0.0.0.0", port=0, token="t"))
    port = free_port()
    monkeypatch.setenv("OFFING_ENGINE_KEY", "a secret")
    with serving({"words@1": policies["words@1"]}, port=port) as engine:
        assert engine.client.get("/health").status_code == 200
        assert engine.client.get("/v1/models").status_code == 401
        bearer = {"authorization": "Bearer a secret"}
        assert engine.client.get("/v1/models", headers=bearer).status_code == 200


@pytest.mark.parametrize("full", [True, False])
def test_weights_that_are_cut_short_are_rejected(served: Served, policies: dict[str, Path], tmp_path: Path, full: bool):
    folder = tmp_path / "cut"
    shutil.copytree(policies["words@1"], folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    if not full:
        config = {"peft_type": "LORA", "base_model_name_or_path": str(policies["words@1"])}
        (folder / "adapter_config.json").write_text(json.dumps(config))
    response = served.client.post("/v1/load_policy", json={"name": "words@6", "path": str(folder)})
    assert response.status_code == 400
    assert "model.safetensors" in response.json()["error"]["message"]
    assert request_completion(served)["choices"]


def test_adapters_come_and_go_over_the_wire(served: Served, policies: dict[str, Path], tmp_path: Path):
    folder = adapter(tmp_path / "adapter", policies["words@1"], seed=5)
    before = request_completion(served)
    loaded = served.client.post("/v1/load_lora_adapter", json={"lora_name": "words@5", "lora_path": str(folder)})
    assert loaded.status_code == 200, loaded.text
    answer = request_completion(served, model="words@5")
    drawn = answer["choices"][0]["token_ids"]
    stored = [entry["logprob"] for entry in answer["choices"][0]["logprobs"]["content"]]
    ids = answer["prompt_token_ids"] + drawn
    assert score(served, "words@5", ids)[-len(drawn) :] == pytest.approx(stored, abs=1e-4)
    assert score(served, "words@1", ids)[-len(drawn) :] != pytest.approx(stored, abs=1e-2)
    assert answer["weights_sha256"] != before["weights_sha256"]
    assert served.client.post("/v1/unload_policy", json={"name": "words@1"}).status_code == 409
    assert served.client.post("/v1/unload_lora_adapter", json={"lora_name": "words@5"}).status_code == 200
    assert request_error(served, model="words@5")[0] == 404
    assert request_completion(served)["choices"] == before["choices"]
    again = served.client.post("/v1/load_lora_adapter", json={"lora_name": "words@5", "lora_path": str(folder)})
    assert again.status_code == 200
    assert served.client.post("/v1/unload_lora_adapter", json={"lora_name": "words@5"}).status_code == 200
