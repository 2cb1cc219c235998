"""Rules of a LangGraph project for the webhooks of its runs: which addresses may be told, and with which headers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from offing.core.errors import InvalidInput

DEFAULT_ENV_PREFIX = "LG_WEBHOOK_"
"""Beginning of the names of variables that headers may name, unless the project says another one."""

DEFAULT_PORTS = {"https": 443, "http": 80}

_TEMPLATE = re.compile(r"\$\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The rules. The guard against private addresses applies beside them."""

    file: str = ""
    """Name of the configuration file in errors."""
    env_prefix: str = DEFAULT_ENV_PREFIX
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers of each message, with templates such as `${{ env.LG_WEBHOOK_TOKEN }}`. They may be secrets."""
    needs_https: bool = False
    allowed_domains: tuple[str, ...] = ()
    """Hosts, and `*.example.org` for all below a host. Empty means every host."""
    allowed_ports: tuple[int, ...] = ()
    """Empty means 443 and 80."""
    max_url_length: int | None = None
    """`None` means that of the server."""
    is_disabled: bool = False
    """No message is sent, and the runs are executed."""

    @property
    def has_secrets(self) -> bool:
        """Whether a header contains a variable."""
        return any(_TEMPLATE.search(value) for value in self.headers.values())

    def find_problem(self, url: str) -> str:
        """Return why the project does not allow an address. Empty means that it does."""
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)
        except ValueError as error:
            return f"it is no address: {error}"
        if self.max_url_length is not None and len(url) > self.max_url_length:
            return f"the address has more than {self.max_url_length} characters, which webhooks.url forbids"
        if self.needs_https and parts.scheme != "https":
            return "the address does not begin with https://, which webhooks.url requires"
        if self.allowed_domains and not any(_is_of_domain(host, one.lower()) for one in self.allowed_domains):
            return f"{host} is not among the allowed_domains of webhooks.url"
        if self.allowed_ports and port not in self.allowed_ports:
            return f"port {port} is not among the allowed_ports of webhooks.url"
        return ""

    def resolve_headers(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with the values of their variables.

        Raises InvalidInput for a variable that is not set or may not be named. No error contains a value.
        """
        return {name: self._resolve(name, value, variables) for name, value in self.headers.items()}

    def _resolve(self, header: str, value: str, variables: Mapping[str, str]) -> str:
        key = f"{self.file}: webhooks.headers.{header}"

        def replace(match: re.Match[str]) -> str:
            variable = match[1]
            if not variable.startswith(self.env_prefix):
                problem = f"the variable {variable} does not begin with {self.env_prefix}"
                raise InvalidInput(key, problem, "Rename it, or set webhooks.env_prefix.")
            if not variables.get(variable):
                raise InvalidInput(key, f"the variable {variable} is not set", "Set it in `env`.")
            return variables[variable]

        resolved = _TEMPLATE.sub(replace, value)
        if "${{" in _TEMPLATE.sub("", value):
            raise InvalidInput(key, "it has a template that is not known", "Use ${{ env.NAME }}.")
        if not (resolved.isprintable() and resolved.isascii()):
            raise InvalidInput(key, "its value has characters that a header cannot have", "Use printable ASCII.")
        return resolved


def _is_of_domain(host: str, allowed: str) -> bool:
    """Return whether a host is allowed. `*.example.org` allows what is below the domain, not the domain itself."""
    return host.endswith(allowed[1:]) and host != allowed[2:] if allowed.startswith("*.") else host == allowed
