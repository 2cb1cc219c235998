"""A model server on this machine or a private network is asked when the operator has accepted it, and not before."""

import errno
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice, EngineFailure, FailureKind
from offing.models.accepted import SERVERS, accept, accepted_servers, is_accepted, servers_file, withdraw
from offing.models.addresses import parse_api_base
from offing.models.credentials import LOCAL, NO_KEY, Destination, destination
from offing.models.discover import EngineFound, servers_here
from offing.models.litellm_client import loaded
from offing.models.policy_engine import PolicyEngine
from tests.models.asking import GOOD, Time, answered, choice, failed, litellm_engine, request
from tests.models.test_policy_engine import small
from tests.unit.models.test_discover import Listing
from tests.wire import Completion, Fault, WireServer, scripted
from tests.wire.policies import Policies, says

SECRET = "what-a-service-of-mine-says"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"OFFING_HOME": str(tmp_path / "home")}


def to(base: str, env: dict[str, str]) -> Destination | EngineFailure:
    return destination(EngineChoice(engine="litellm", model="openai/x", api_base=base), env)


async def test_a_port_of_this_machine_is_asked_only_after_it_was_accepted(env: dict[str, str]) -> None:
    async with WireServer(scripted(Fault(400, SECRET), Completion(GOOD)), accepted=False) as server:
        refused = await failed(litellm_engine(env=env | {SERVERS: ""}), request(choice(server.url)))
        assert server.requests == []
        accept(env, server.url)
        told = await failed(litellm_engine(env=env | {SERVERS: ""}), request(choice(server.url)))
        await answered(litellm_engine(env=env | {SERVERS: ""}), request(choice(server.url)))
    assert refused.kind is FailureKind.BAD_REQUEST
    assert SECRET not in repr(refused)
    assert "offing engine accept" in refused.message
    assert SECRET in told.message
    assert server.requests[0].headers["authorization"] == f"Bearer {NO_KEY}"


async def test_a_policy_server_is_asked_only_after_it_was_accepted(env: dict[str, str]) -> None:
    async with WireServer(Policies(says(GOOD)), accepted=False) as server:
        time = Time()
        engine = PolicyEngine(env | {"OFFING_ENGINE_KEY": "k"}, sleep=time.sleep, clock=time.clock)
        refused = await failed(engine, request(small(api_base=server.url)))
        assert server.requests == []
        accept(env, server.url)
        await answered(engine, request(small(api_base=server.url)))
    assert "offing engine accept" in refused.message
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "base",
    [
        "http://127.0.0.1:9099/v1",
        "http://localhost:9099",
        "http://[::1]:9099",
        "http://127.8.8.8:9099",
        "http://0.0.0.0:9099",
        "http://10.0.0.5:8000/v1",
        "http://192.168.1.7:8000",
        "http://169.254.169.254/latest",
        "http://[fd00::1]:8000",
        "http://gpu.internal:8000",
    ],
)
def test_no_address_is_allowed_by_being_near(base: str, env: dict[str, str]) -> None:
    refused = to(base, env)
    assert isinstance(refused, EngineFailure)
    assert refused.message.startswith("api_base:")
    accept(env, base)
    assert to(base, env) == Destination(base, NO_KEY, keyless=True)
    assert withdraw(env, base)
    assert isinstance(to(base, env), EngineFailure)


def test_on_this_machine_a_port_is_accepted_and_elsewhere_a_path(env: dict[str, str]) -> None:
    accept(env, "http://localhost:11434/v1")
    accept(env, "http://gpu.internal:8000/team-a/")
    assert isinstance(to("http://127.0.0.1:11434", env), Destination)
    assert isinstance(to("http://[::1]:11434/api", env), Destination)
    assert isinstance(to("http://127.0.0.1:11435", env), EngineFailure)
    assert isinstance(to("https://127.0.0.1:11434", env), EngineFailure)
    assert isinstance(to("http://gpu.internal:8000/team-a/v1", env), Destination)
    assert isinstance(to("http://gpu.internal:8000/team-b", env), EngineFailure)


@pytest.mark.parametrize("provider", sorted(LOCAL))
def test_a_provider_that_listens_on_this_machine_waits_for_acceptance_too(provider: str, env: dict[str, str]) -> None:
    named = EngineChoice(engine="litellm", model=f"{provider}/qwen3")
    refused = destination(named, env)
    assert isinstance(refused, EngineFailure)
    assert refused.message.startswith("model:")
    assert f"offing engine accept {LOCAL[provider]}" in refused.message
    accept(env, LOCAL[provider])
    assert destination(named, env) == Destination(LOCAL[provider], NO_KEY, keyless=True)


async def test_no_other_provider_of_litellm_is_asked_on_this_machine_by_itself() -> None:
    litellm = await loaded()
    for provider in {str(getattr(one, "value", one)) for one in litellm.provider_list} - LOCAL.keys():
        try:
            base = litellm.get_llm_provider(f"{provider}/some-model")[3]
        except litellm.exceptions.BadRequestError:
            continue
        found = parse_api_base(base or "https://elsewhere.example")
        assert found is None or not found.host.startswith(("127.", "localhost", "0.0.0.0")), (provider, base)


@pytest.mark.parametrize(
    "named",
    [
        {"OPENAI_API_BASE": "http://127.0.0.1:9099/v1"},
        {"OPENAI_BASE_URL": "http://127.0.0.1:9099/v1"},
        {"OFFING_ENGINE_ADDRESSES": "http://127.0.0.1:9099"},
    ],
)
def test_what_the_environment_names_is_accepted_by_that(named: dict[str, str], env: dict[str, str]) -> None:
    assert to("http://127.0.0.1:9099/v1", env | named) == Destination("http://127.0.0.1:9099/v1", NO_KEY)


@pytest.mark.parametrize("variable", ["OLLAMA_API_BASE", "OLLAMA_BASE_URL"])
@pytest.mark.parametrize("model", ["ollama/qwen3", "ollama_chat/qwen3"])
def test_an_ollama_that_the_environment_names_is_the_one_that_is_asked(
    model: str, variable: str, env: dict[str, str]
) -> None:
    """litellm reads one of the two variables, and would ask this machine's usual port where the other is set."""
    there = "http://10.0.0.7:11434"
    named = env | {variable: there, "OLLAMA_API_KEY": "k"}
    assert destination(EngineChoice(engine="litellm", model=model), named) == Destination(there, "k")
    assert destination(EngineChoice(engine="litellm", model=model, api_base=there), named) == Destination(there, "k")


@pytest.mark.parametrize(
    "provider", ["databricks", "azure", "watsonx", "gigachat", "bedrock", "vertex_ai", "predibase"]
)
def test_a_provider_with_further_secrets_is_not_asked_at_a_server_that_was_only_accepted(
    provider: str, env: dict[str, str]
) -> None:
    accept(env, "http://127.0.0.1:11434")
    named = EngineChoice(engine="litellm", model=f"{provider}/x", api_base="http://127.0.0.1:11434/v1")
    own = {f"{provider.upper()}_API_BASE": "http://127.0.0.1:11434"}
    refused = destination(named, env)
    assert isinstance(refused, EngineFailure)
    assert refused.message.startswith("api_base: ")
    assert f"Write openai/MODEL for a server that speaks OpenAI's API, or set {next(iter(own))}" in refused.message
    assert isinstance(destination(named, env | own), Destination)


def test_a_secret_that_goes_to_the_root_of_a_server_goes_where_its_own_variable_says(env: dict[str, str]) -> None:
    listed = {"OFFING_ENGINE_ADDRESSES": "http://10.0.0.5:8000/team-a"}
    named = EngineChoice(engine="litellm", model="databricks/x", api_base="http://10.0.0.5:8000/team-a")
    assert isinstance(destination(named, env | listed), EngineFailure)


async def test_a_server_that_is_found_is_offered_and_nothing_of_it_is_shown(env: dict[str, str]) -> None:
    async with Listing({"models": [{"name": SECRET}]}) as ollama:
        asked = env | {"OLLAMA_API_BASE": "", "HOSTED_VLLM_API_BASE": "http://127.0.0.1:9"}
        offered = await found_at(ollama.url, asked)
        accept(env, ollama.url)
        accepted = await found_at(ollama.url, asked)
    assert (offered.available, offered.models, offered.offered_at) == (False, (), ollama.url)
    assert f"offing engine accept {ollama.url}" in offered.note
    assert SECRET not in repr(offered)
    assert (accepted.available, accepted.models, accepted.offered_at) == (True, (f"ollama_chat/{SECRET}",), "")


async def test_the_ollama_that_runs_ask_is_the_one_that_is_found(env: dict[str, str]) -> None:
    async with Listing({"models": [{"name": "qwen3"}]}) as ollama:
        found = await servers_here(env | {"OLLAMA_BASE_URL": ollama.url}, seconds=20)
    assert [one.note for one in found if one.models == ("ollama_chat/qwen3",)] == [f"Answers at {ollama.url}."]


async def found_at(url: str, env: dict[str, str]) -> EngineFound:
    """The Ollama that is found, where `url` is the place at which one listens by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LOCAL, "ollama_chat", url)
        return next(one for one in await servers_here(env, seconds=20) if one.name == "litellm:ollama_chat")


def test_a_file_that_others_may_write_is_not_believed(env: dict[str, str]) -> None:
    accept(env, "http://127.0.0.1:9099")
    file = servers_file(env)
    assert file is not None
    assert file.stat().st_mode & 0o077 == 0
    file.chmod(0o666)
    with pytest.raises(Conflict, match="chmod 600"):
        accepted_servers(env)
    refused = to("http://127.0.0.1:9099", env)
    assert isinstance(refused, EngineFailure)
    assert "chmod 600" in refused.message


def test_a_file_that_cannot_be_read_is_refused_with_its_owner_and_the_remedy(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(env, "http://127.0.0.1:9099")

    def closed(_: Path, **__: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", closed)
    refused = to("http://127.0.0.1:9099", env)
    assert isinstance(refused, EngineFailure)
    owner = pwd.getpwuid(os.geteuid()).pw_name
    assert f"cannot be used: Permission denied. {servers_file(env)} belongs to {owner}." in refused.message
    assert f"chown {os.geteuid()} {servers_file(env)}" in refused.message
    with pytest.raises(Conflict, match="Permission denied"):
        accept(env, "http://127.0.0.1:9100")


def test_a_file_that_is_no_text_is_refused(env: dict[str, str]) -> None:
    accept(env, "http://127.0.0.1:9099")
    file = servers_file(env)
    assert file is not None
    file.write_bytes(b"\xff\xfe\x00")
    refused = to("http://127.0.0.1:9099", env)
    assert isinstance(refused, EngineFailure)
    assert "is no text in UTF-8. Remove it" in refused.message


def test_a_file_of_another_user_is_named_as_that(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    accept(env, "http://127.0.0.1:9099")
    file, found = servers_file(env), os.geteuid()
    assert file is not None
    if found == 0:
        os.chown(file, 54321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: found + 1)
    with pytest.raises(Conflict, match=r"belongs to another user, .*chown") as refused:
        accepted_servers(env)
    assert "chmod" not in str(refused.value)


def test_servers_that_are_accepted_at_the_same_time_are_all_kept(env: dict[str, str]) -> None:
    code = "import sys; from offing.models.accepted import accept\n"
    code += "for port in sys.argv[2:]: accept({'OFFING_HOME': sys.argv[1]}, f'http://127.0.0.1:{port}')"
    ports = [[str(9000 + 40 * process + count) for count in range(40)] for process in range(4)]
    running = [subprocess.Popen([sys.executable, "-c", code, env["OFFING_HOME"], *some]) for some in ports]
    assert [process.wait(60) for process in running] == [0] * 4
    assert {server.port for server in accepted_servers(env)} == {int(port) for some in ports for port in some}


def test_a_line_that_is_no_address_is_named(env: dict[str, str]) -> None:
    accept(env, "http://127.0.0.1:9099")
    file = servers_file(env)
    assert file is not None
    file.write_text(file.read_text() + "http://u:p@gpu.internal\n")
    with pytest.raises(InvalidInput, match="engine-servers"):
        accepted_servers(env)
    for nonsense in ("11434", "localhost:11434", "http://a/?q", "unix:///run/x.sock", ""):
        with pytest.raises(InvalidInput, match="ADDRESS"):
            accept({"OFFING_HOME": env["OFFING_HOME"] + "-2"}, nonsense)


def test_one_file_can_be_named_for_several_machines(env: dict[str, str], tmp_path: Path) -> None:
    shared = {SERVERS: str(tmp_path / "shared")}
    accept(env | shared, "http://10.0.0.5:8000")
    base = parse_api_base("http://10.0.0.5:8000/v1")
    assert base is not None
    assert is_accepted(base, shared)
    assert not is_accepted(base, env)
    assert servers_file({}) is None
    assert servers_file(os.environ) is not None
