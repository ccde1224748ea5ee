"""What "ssh://user@host:port/dir?via=jump&user=other" says."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

from backends.ssh.address import parse_address, parse_jumps

__all__ = ["connect_options"]

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: Options of a URL, and the arguments of `SshBackend.connect` that they are.
_NAMES = {
    "via": "via",
    "user": "become_user",
    "config": "config",
    "known_hosts": "known_hosts",
    "login_env": "login_env",
}


def connect_options(url: str) -> dict[str, Any]:
    """Return the arguments of `SshBackend.connect` that a URL stands for.

    Args:
        url: "ssh://[user@]host[:port][/dir][?via=&user=&config=&known_hosts=&login_env=
            &env=NAME=value]"; `via` has commas between hosts, `env` may come again, and "/~/dir"
            is in the home folder.

    Raises:
        ValueError: It names no host, or something else than these. The text holds no password.
    """
    place, _, query = url.partition("://")[2].partition("?")
    host, slash, folder = place.partition("/")
    address = parse_address(unquote(host))
    shown = f"ssh://{address}"
    options: dict[str, Any] = {"destination": str(address)}
    if folder:
        folder = unquote(folder)
        if folder.startswith("~") and not f"{folder}/".startswith("~/"):
            raise ValueError(f"{shown}: only your own home has a name here, ~/dir; not {folder!r}")
        options["cwd"] = folder if folder.startswith("~") else slash + folder
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "env":
            variable, equals, text = value.partition("=")
            if not (variable and equals):
                raise ValueError(f"{shown}: env is NAME=value, not {value!r}")
            options.setdefault("env", {})[variable] = text
        elif name in _NAMES:
            options[_NAMES[name]] = _value(shown, name, value)
        else:
            names = ", ".join(sorted([*_NAMES, "env"]))
            raise ValueError(f"{shown}: there is no option {name!r}; there are {names}")
    return options


def _value(shown: str, name: str, text: str) -> object:
    if name == "via":
        parse_jumps(text)  # so that what is wrong with it is told now
    elif name == "login_env":
        if text.lower() not in _FLAGS:
            raise ValueError(f"{shown}: login_env is true or false, not {text!r}")
        return _FLAGS[text.lower()]
    elif not text:
        raise ValueError(f"{shown}: {name} is empty")
    return text
