"""Where the Docker engine is: an address given, DOCKER_HOST, or docker's own contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from operations import BackendUnavailable

if TYPE_CHECKING:
    from docker.tls import TLSConfig

__all__ = ["Address", "find_address"]

_DEFAULT = "unix:///var/run/docker.sock"
_SCHEMES = ("unix://", "tcp://", "http://", "https://")


@dataclass(frozen=True, slots=True)
class Address:
    """An engine's address, with what a TLS connection to it needs."""

    url: str
    tls: TLSConfig | None = None

    @property
    def key(self) -> str:
        """Equal for two addresses of one engine that are reached alike."""
        certificates = self.tls and (self.tls.cert, self.tls.ca_cert, self.tls.verify)
        return f"{self.url} {certificates}"

    def __str__(self) -> str:
        return f"the Docker engine at {self.url}"


def find_address(url: str | None, environ: Mapping[str, str], target: str) -> Address:
    """Return the address of the engine to use; reads docker's files, so in a thread.

    Args:
        url: An address; None for what the environment or the current context says.
        environ: Our environment.
        target: The target as the user named it, for errors.

    Raises:
        BackendUnavailable: The docker package is missing, or the kind of address not supported.
    """
    try:
        from docker.errors import DockerException
        from docker.utils import kwargs_from_env
    except ImportError as error:
        reason = "the docker package is missing; install remotehands[docker]"
        raise BackendUnavailable(target, reason) from error
    try:
        found: dict[str, Any] = dict(
            kwargs_from_env({**environ, **({"DOCKER_HOST": url} if url else {})})
        )
        if "base_url" not in found:
            found |= _from_context(environ)
        address = Address(str(found.get("base_url", _DEFAULT)), found.get("tls"))
        _ = urlsplit(address.url).port  # which the SDK would look at later, and not as an error
    except (DockerException, ValueError) as error:
        raise BackendUnavailable(target, f"Docker's configuration: {error}") from error
    if not address.url.startswith(_SCHEMES):
        kinds = ", ".join(_SCHEMES)
        reason = f"an engine at {address.url!r} is not supported; there are {kinds}"
        if address.url.startswith("ssh://"):
            reason += " (for a host over ssh: `ssh -L /tmp/docker.sock:/var/run/docker.sock HOST`)"
        raise BackendUnavailable(target, reason)
    return address


def _from_context(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what a context of docker's command line says, as the SDK takes it."""
    from docker.context import ContextAPI
    from docker.errors import DockerException

    name = environ.get("DOCKER_CONTEXT")
    if name is None and "DOCKER_CONFIG" not in environ and "HOME" not in environ:
        return {}
    context = ContextAPI.get_context(name)
    if context is None:
        raise DockerException(f"there is no context {name!r}")
    if name in (None, "default") and context.name == "default":
        return {}
    found: dict[str, Any] = {"base_url": context.Host}
    if context.TLSConfig is not None:
        found["tls"] = context.TLSConfig
    return found
