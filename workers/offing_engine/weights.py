"""Policies in memory: full weights, and LoRA adapters over them.

The only home of loading. A version is immutable: its name never gets other weights while it is resident. An adapter
shares its base's tensors; which of them answers is set before each forward, from one thread.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers and peft carry partial types.

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from offing.core.errors import InvalidInput
from offing_engine.attention import use_shared_heads
from offing_engine.folder import (
    BASE_NOTE,
    Hashes,
    adapter_sha256,
    checked_folder,
    read_json,
    refuse_changed,
    template_sha256,
    tokenizer_sha256,
    weights_sha256,
)
from offing_engine.logs import quiet
from offing_engine.pieces import Pieces
from offing_engine.rendering import Renderer

ATTENDING = {"full_attention", "sliding_attention"}


class Network:
    """A causal language model, perhaps with adapters; `use` chooses which of them the next forward goes through."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config
        self.device: torch.device = model.device
        self._wrapped: Any = None
        self._in_use: str | None = None

    @property
    def layers(self) -> int:
        return int(self.config.num_hidden_layers)

    @property
    def vocabulary(self) -> int:
        return int(self.config.vocab_size)

    @property
    def slides(self) -> bool:
        """Whether some layer sees only a window."""
        return "sliding_attention" in (getattr(self.config, "layer_types", None) or ())

    def use(self, adapter: str | None) -> Any:
        """The model, answering through `adapter`; None: without any."""
        if self._wrapped is None or adapter == self._in_use:
            return self.model
        if adapter is None:
            self._wrapped.base_model.disable_adapter_layers()
        else:
            self._wrapped.base_model.enable_adapter_layers()
            self._wrapped.set_adapter(adapter)
        self._in_use = adapter
        return self.model

    def add(self, adapter: str, folder: Path) -> None:
        """Loads a LoRA adapter. Blocks; nothing may be in a forward meanwhile."""
        from peft import PeftModel

        if self._wrapped is None:
            self._wrapped = PeftModel.from_pretrained(self.model, folder, adapter_name=adapter, is_trainable=False)
        else:
            self._wrapped.load_adapter(folder, adapter_name=adapter, is_trainable=False)
        self._wrapped.eval()
        self._wrapped.base_model.disable_adapter_layers()
        self._in_use = None

    def remove(self, adapter: str) -> None:
        """Frees an adapter. The last one leaves the layers that carried it in place, switched off."""
        self.use(None)
        self._wrapped.delete_adapter(adapter)
        if not self._wrapped.peft_config:
            self.model = self._wrapped.unload()
            self._wrapped = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One resident version."""

    name: str
    path: Path
    network: Network
    adapter: str | None
    """Name of the LoRA adapter inside the network. None: full weights."""
    hashes: Hashes
    files_sha256: str
    """Of the folder's own files; for full weights the same as the weights' hash."""
    renderer: Renderer
    pieces: Pieces
    ends: frozenset[int]
    """Ids that end a turn."""
    context: int
    """Tokens that prompt and completion may have together."""


def load_full(name: str, folder: Path, device: torch.device, most_context: int) -> Policy:
    """Full weights from `folder`, in the precision they are stored in. Raises InvalidInput."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    refuse_changed(folder, name, "path")
    _readable(folder, "path")
    quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype="auto")
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(
            "path", f"{folder} cannot be loaded: {first}", "Give a folder made by save_pretrained."
        ) from error
    loaded: Any = model
    network = Network(loaded.to(device).eval().requires_grad_(False))
    _refuse_other_memory(network, folder)
    use_shared_heads(network.model)
    return _policy(name, folder, network, None, None, tokenizer, folder, most_context)


def _readable(folder: Path, field: str) -> None:
    """Raises InvalidInput for a folder that cannot be a policy, or whose files are cut short."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(checked_folder(folder, field).glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise InvalidInput(field, f"{file} cannot be read: {error}", "Publish it whole, then load it.") from error


def _refuse_other_memory(network: Network, folder: Path) -> None:
    kinds = set(getattr(network.config, "layer_types", None) or ATTENDING) - ATTENDING
    if kinds:
        remedy = "Serve it with vLLM or SGLang; the wire is the same."
        raise InvalidInput("path", f"{folder} has layers of kind {', '.join(sorted(kinds))}", remedy)


def base_of(folder: Path, base: str | None, resident: Mapping[str, Policy]) -> Policy:
    """The resident full weights that an adapter was trained over. Raises InvalidInput when they are not known for sure.

    In this order: the name `base`; the hash in the adapter's base.json; the name or path in its own configuration.
    """
    full = [policy for policy in resident.values() if policy.adapter is None]
    noted = read_json(folder / BASE_NOTE).get("weights_sha256")
    named = base or read_json(folder / "adapter_config.json").get("base_model_name_or_path") or ""
    for policy in full:
        if _is_base(policy, named, noted):
            return policy
    have = ", ".join(policy.name for policy in full) or "none"
    remedy = f"Load the base first and name it in `base`, or note its hash in {BASE_NOTE}. Full weights here: {have}."
    raise InvalidInput("lora_path", f"the adapter's base {noted or named!r} is not loaded", remedy)


def _is_base(policy: Policy, named: str, noted: str | None) -> bool:
    if noted is not None:
        return policy.hashes.weights == noted
    return bool(named) and (policy.name == named or policy.path == Path(named).resolve())


def load_adapter(name: str, folder: Path, base: Policy, most_context: int) -> Policy:
    """A LoRA adapter over `base`. The tokenizer and template are its own where its folder has them."""
    from transformers import AutoTokenizer

    refuse_changed(folder, name, "lora_path")
    _readable(folder, "lora_path")
    label = name.replace(".", "_").replace("@", "-at-")
    base.network.add(label, folder)
    own = folder if (folder / "tokenizer.json").is_file() else base.path
    tokenizer = AutoTokenizer.from_pretrained(own, local_files_only=True)
    return _policy(name, folder, base.network, label, base.hashes.weights, tokenizer, own, most_context)


def _policy(
    name: str,
    folder: Path,
    network: Network,
    adapter: str | None,
    base: str | None,
    tokenizer: Any,
    tokenizer_folder: Path,
    most_context: int,
) -> Policy:
    template = tokenizer.chat_template or ""
    files = weights_sha256(folder)
    weights = files if base is None else adapter_sha256(base, files)
    hashes = Hashes(weights, tokenizer_sha256(tokenizer_folder), template_sha256(template))
    ends = _ends(network, tokenizer)
    limit = min(int(network.config.max_position_embeddings), most_context)
    renderer = Renderer(tokenizer, ends, network.vocabulary)
    return Policy(name, folder.resolve(), network, adapter, hashes, files, renderer, Pieces(tokenizer), ends, limit)


def _ends(network: Network, tokenizer: Any) -> frozenset[int]:
    said = network.model.generation_config.eos_token_id if network.model.generation_config else None
    listed = said if isinstance(said, list) else [said]
    return frozenset(int(id) for id in [*listed, tokenizer.eos_token_id] if id is not None)
