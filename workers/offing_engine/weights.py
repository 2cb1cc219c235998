"""Policies in memory: full weights, and LoRA adapters over them.

A version is immutable: its name never gets other weights while it is resident. An adapter shares
the tensors of its base. One thread selects the adapter before each forward pass.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers and peft have partial types.

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from offing.core.errors import InvalidInput
from offing.models.policy_folder import (
    BASE_FILE,
    PolicyHashes,
    check_folder,
    check_unchanged,
    hash_adapter,
    hash_template,
    hash_tokenizer,
    hash_weights,
    read_json,
)
from offing_engine.attention import use_shared_heads
from offing_engine.chat_template import ChatTemplate
from offing_engine.logs import disable_progress_bars
from offing_engine.token_decoder import TokenDecoder

FULL_CACHE_LAYER_TYPES = {"full_attention", "sliding_attention"}


class ServedNetwork:
    """Causal language model, possibly with adapters.

    `select_adapter` chooses one for the next forward pass.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config
        self.device: torch.device = model.device
        self._wrapped: Any = None
        self._in_use: str | None = None

    @property
    def layer_count(self) -> int:
        return int(self.config.num_hidden_layers)

    @property
    def vocabulary_size(self) -> int:
        return int(self.config.vocab_size)

    @property
    def has_sliding_layers(self) -> bool:
        """Whether some layer has sliding-window attention."""
        return "sliding_attention" in (getattr(self.config, "layer_types", None) or ())

    def select_adapter(self, adapter: str | None) -> Any:
        """Return the model with `adapter` active. `None` means no adapter."""
        if self._wrapped is None or adapter == self._in_use:
            return self.model
        if adapter is None:
            self._wrapped.base_model.disable_adapter_layers()
        else:
            self._wrapped.base_model.enable_adapter_layers()
            self._wrapped.set_adapter(adapter)
        self._in_use = adapter
        return self.model

    def add_adapter(self, adapter: str, folder: Path) -> None:
        """Load a LoRA adapter. Blocks; no forward pass may run meanwhile."""
        from peft import PeftModel

        if self._wrapped is None:
            self._wrapped = PeftModel.from_pretrained(self.model, folder, adapter_name=adapter, is_trainable=False)
        else:
            self._wrapped.load_adapter(folder, adapter_name=adapter, is_trainable=False)
        self._wrapped.eval()
        self._wrapped.base_model.disable_adapter_layers()
        self._in_use = None

    def remove_adapter(self, adapter: str) -> None:
        """Free an adapter. After the last one, the adapter layers stay in place but are disabled."""
        self.select_adapter(None)
        self._wrapped.delete_adapter(adapter)
        if not self._wrapped.peft_config:
            self.model = self._wrapped.unload()
            self._wrapped = None


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """Resident policy version."""

    name: str
    path: Path
    network: ServedNetwork
    adapter: str | None
    """Name of the LoRA adapter in the network. `None` means full weights."""
    hashes: PolicyHashes
    files_sha256: str
    """Hash of the folder's own files. For full weights it is the weights' hash."""
    chat_template: ChatTemplate
    token_decoder: TokenDecoder
    end_ids: frozenset[int]
    """Token ids that end a turn."""
    max_context_tokens: int
    """Maximum number of tokens of prompt and completion together."""


def load_full_policy(name: str, folder: Path, device: torch.device, max_context_tokens: int) -> LoadedPolicy:
    """Load full weights from `folder` in their stored precision. Raises InvalidInput."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    check_unchanged(folder, name, "path")
    _check_readable(folder, "path")
    disable_progress_bars()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype="auto")
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(
            "path", f"{folder} cannot be loaded: {first}", "Use a folder that save_pretrained has written."
        ) from error
    loaded: Any = model
    network = ServedNetwork(loaded.to(device).eval().requires_grad_(False))
    _check_memory_layout(network, folder)
    use_shared_heads(network.model)
    return _build_policy(name, folder, network, None, None, tokenizer, folder, max_context_tokens)


def _check_readable(folder: Path, field: str) -> None:
    """Raise InvalidInput if a folder cannot be a policy or has truncated files."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(check_folder(folder, field).glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise InvalidInput(
                field, f"{file} cannot be read: {error}", "Copy the complete file, then load the policy."
            ) from error


def _check_memory_layout(network: ServedNetwork, folder: Path) -> None:
    kinds = set(getattr(network.config, "layer_types", None) or FULL_CACHE_LAYER_TYPES) - FULL_CACHE_LAYER_TYPES
    if kinds:
        remedy = "Serve it with vLLM or SGLang, which use the same protocol."
        raise InvalidInput("path", f"{folder} has unsupported layer types: {', '.join(sorted(kinds))}", remedy)


def resolve_base(folder: Path, base: str | None, resident: Mapping[str, LoadedPolicy]) -> LoadedPolicy:
    """Return the resident full weights that an adapter was trained over.

    Raises InvalidInput if they are ambiguous or unknown. They are identified by the name `base`, the
    hash in the adapter's base.json, or the name or path in its own configuration, in this order.
    """
    full = [policy for policy in resident.values() if policy.adapter is None]
    base_hash = read_json(folder / BASE_FILE).get("weights_sha256")
    base_name = base or read_json(folder / "adapter_config.json").get("base_model_name_or_path") or ""
    for policy in full:
        if _is_base(policy, base_name, base_hash):
            return policy
    have = ", ".join(policy.name for policy in full) or "none"
    remedy = (
        f"Load the base first and set `base` to its name, or write its hash to {BASE_FILE}. Loaded full weights: "
        f"{have}."
    )
    raise InvalidInput("lora_path", f"the adapter's base {base_hash or base_name!r} is not loaded", remedy)


def _is_base(policy: LoadedPolicy, named: str, noted: str | None) -> bool:
    if noted is not None:
        return policy.hashes.weights == noted
    return bool(named) and (policy.name == named or policy.path == Path(named).resolve())


def load_adapter_policy(name: str, folder: Path, base: LoadedPolicy, max_context_tokens: int) -> LoadedPolicy:
    """Load a LoRA adapter over `base`. Its own tokenizer and template are used if its folder has them."""
    from transformers import AutoTokenizer

    check_unchanged(folder, name, "lora_path")
    _check_readable(folder, "lora_path")
    label = name.replace(".", "_").replace("@", "-at-")
    base.network.add_adapter(label, folder)
    own = folder if (folder / "tokenizer.json").is_file() else base.path
    tokenizer = AutoTokenizer.from_pretrained(own, local_files_only=True)
    return _build_policy(name, folder, base.network, label, base.hashes.weights, tokenizer, own, max_context_tokens)


def _build_policy(
    name: str,
    folder: Path,
    network: ServedNetwork,
    adapter: str | None,
    base: str | None,
    tokenizer: Any,
    tokenizer_folder: Path,
    max_context_tokens: int,
) -> LoadedPolicy:
    template = tokenizer.chat_template or ""
    files = hash_weights(folder)
    weights = files if base is None else hash_adapter(base, files)
    hashes = PolicyHashes(weights, hash_tokenizer(tokenizer_folder), hash_template(template))
    end_ids = _read_end_ids(network, tokenizer)
    limit = min(int(network.config.max_position_embeddings), max_context_tokens)
    chat_template = ChatTemplate(tokenizer, end_ids, network.vocabulary_size)
    return LoadedPolicy(
        name, folder.resolve(), network, adapter, hashes, files, chat_template, TokenDecoder(tokenizer), end_ids, limit
    )


def _read_end_ids(network: ServedNetwork, tokenizer: Any) -> frozenset[int]:
    configured = network.model.generation_config.eos_token_id if network.model.generation_config else None
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(int(id) for id in [*ids, tokenizer.eos_token_id] if id is not None)
