"""The key file, which encrypts the keys of providers in the database.

It lies outside the database and outside its backups, so that a dump alone yields no key. Each line has a key id and a
256-bit key. The last line encrypts, and every line decrypts. The file is read at each use, so a change applies to all
processes at once.
"""

import base64
import binascii
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offing import environment
from offing.core.errors import Conflict, InvalidInput
from offing.settings import default_home

KEY_FILE_VARIABLE = "OFFING_PROVIDER_KEY_FILE"
"""Environment variable that names the file. Default: `provider.key` in OFFING_HOME."""

_FILE_HEADER = "# Encrypts the keys of providers in the database. Keep a copy apart from backups of the database.\n"
_NONCE_BYTES = 12
"""Length of a nonce of AES-GCM. A random one is unique enough for 2**32 encryptions under one key."""
_KEY_BITS = 256


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A provider's key as it is stored."""

    key_id: str
    """The line of the key file that encrypts it."""
    ciphertext: bytes
    """The nonce, then the ciphertext of AES-256-GCM with its tag."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The contents of a key file."""

    file: Path
    keys: Mapping[str, bytes] = field(repr=False)
    """The keys by their ids, oldest first. There is at least one."""

    @property
    def current_id(self) -> str:
        """The id of the key that encrypts."""
        return list(self.keys)[-1]

    def encrypt(self, secret: str, context: bytes) -> EncryptedKey:
        """Encrypt a secret for one context. It can be decrypted only with the same context."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self.keys[self.current_id]).encrypt(nonce, secret.encode(), context)
        return EncryptedKey(self.current_id, nonce + sealed)

    def decrypt(self, encrypted: EncryptedKey, context: bytes) -> str:
        """Decrypt a secret.

        Raises Conflict if the file does not have its key, or if ciphertext and context do not belong together.
        """
        key = self.keys.get(encrypted.key_id)
        if key is None:
            problem = f"The key was encrypted with key {encrypted.key_id}, which {self.file} does not contain."
            raise Conflict(problem, "Restore the key file, or set the provider's key again.")
        nonce, sealed = encrypted.ciphertext[:_NONCE_BYTES], encrypted.ciphertext[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, sealed, context).decode()
        except (InvalidTag, ValueError) as error:
            problem = "The stored key does not belong to this provider and address."
            raise Conflict(problem, "Set the provider's key again.") from error


def find_key_file(env: Mapping[str, str]) -> Path:
    """Return the path of the key file. Raises Conflict if the environment names no folder for it."""
    if configured := env.get(KEY_FILE_VARIABLE, "").strip():
        return Path(configured)
    if home := env.get("OFFING_HOME", "").strip():
        return Path(home).expanduser() / "provider.key"
    try:
        if env is environment.VARIABLES:
            return default_home() / "provider.key"
    except InvalidInput as error:
        raise Conflict(str(error), f"Set {KEY_FILE_VARIABLE}.") from error
    raise Conflict("No folder is set for the key file.", f"Set OFFING_HOME or {KEY_FILE_VARIABLE}.")


def read_key_ring(env: Mapping[str, str]) -> KeyRing:
    """Read the key file.

    Raises Conflict if it does not exist, cannot be read, has an invalid line, or may be read by other users.
    """
    file = find_key_file(env)
    try:
        _check_access(file)
        lines = [line.strip() for line in file.read_text(encoding="ascii").splitlines()]
    except FileNotFoundError as error:
        remedy = "Restore it, or set the provider's key again."
        raise Conflict(f"The key file {file} does not exist.", remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Conflict(f"The key file {file} cannot be read: {error}.", "Fix the cause and try again.") from error
    keys = dict(_parse_line(file, line) for line in lines if line and not line.startswith("#"))
    if not keys:
        raise Conflict(f"The key file {file} has no key.", "Restore it, or delete it and set the keys again.")
    return KeyRing(file, keys)


def open_key_ring(env: Mapping[str, str]) -> KeyRing:
    """Read the key file, and create it on the first use.

    A file that OFFING_PROVIDER_KEY_FILE names is not created, because every machine would create another one. Raises
    Conflict as `read_key_ring`.
    """
    file = find_key_file(env)
    if not file.exists():
        if env.get(KEY_FILE_VARIABLE, "").strip():
            remedy = f"Create it with `offing provider new-key-file {file}` and mount it for the API and the workers."
            raise Conflict(f"The file {file} of {KEY_FILE_VARIABLE} does not exist.", remedy)
        create_key_file(file)
    return read_key_ring(env)


def create_key_file(file: Path) -> bool:
    """Create a key file with one key, readable by its owner only.

    Return whether it was created: `False` if it exists. Raises Conflict if it cannot be written.
    """
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(draft, {_new_id(): AESGCM.generate_key(_KEY_BITS)})
        os.link(draft, file)  # unlike a rename, it fails if another process was faster
    except FileExistsError:
        return False
    except OSError as error:
        raise Conflict(f"The key file {file} cannot be written: {error}.", "Fix the cause and try again.") from error
    finally:
        draft.unlink(missing_ok=True)
    return True


def add_key(ring: KeyRing) -> KeyRing:
    """Add a key to the file, which encrypts from now on. Raises Conflict if the file cannot be written."""
    return _replace(ring.file, {**ring.keys, _new_id(): AESGCM.generate_key(_KEY_BITS)})


def keep_keys(ring: KeyRing, key_ids: Collection[str]) -> KeyRing:
    """Remove all other keys from the file, except the one that encrypts. Raises Conflict as `add_key`."""
    return _replace(ring.file, {id: key for id, key in ring.keys.items() if id in key_ids or id == ring.current_id})


def _replace(file: Path, keys: Mapping[str, bytes]) -> KeyRing:
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        _write(draft, keys)
        draft.replace(file)
    except OSError as error:
        remedy = "Add the new line where the file comes from, then use `offing provider rotate-key --keep-file`."
        raise Conflict(f"The key file {file} cannot be written: {error}.", remedy) from error
    finally:
        draft.unlink(missing_ok=True)
    return KeyRing(file, keys)


def _write(file: Path, keys: Mapping[str, bytes]) -> None:
    lines = [f"{id} {base64.b64encode(key).decode()}\n" for id, key in keys.items()]
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        opened.write(_FILE_HEADER + "".join(lines))
        opened.flush()
        os.fsync(opened.fileno())


def _new_id() -> str:
    return f"k{secrets.token_hex(4)}"


def _parse_line(file: Path, line: str) -> tuple[str, bytes]:
    id, _, text = line.partition(" ")
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) * 8 != _KEY_BITS:
        raise Conflict(f"The key file {file} has an invalid line for the id {id[:20]!r}.", "Restore the file.")
    return id, key


def _check_access(file: Path) -> None:
    status = file.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise Conflict(f"The key file {file} belongs to another user.", f"Run: chown {os.geteuid()} {file}")
    # A mounted secret often belongs to root and to a group of the container.
    if status.st_mode & (0o037 if status.st_uid == 0 else 0o077):
        raise Conflict(f"Other users can read the key file {file}.", f"Run: chmod 600 {file}")
