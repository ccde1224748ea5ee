"""What "docker://CONTAINER/dir?user=me" and "docker+run://IMAGE/dir?network=bridge" say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

from backends.docker.options import check_container
from backends.docker.sandbox import Sandbox

__all__ = ["attach_options", "run_options"]

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def attach_options(url: str) -> dict[str, Any]:
    """Return the arguments of `DockerBackend.attach` that a URL stands for.

    Args:
        url: "docker://CONTAINER[/dir][?user=&env=NAME=value&engine=]"; `env` may come again.

    Raises:
        ValueError: It names no container, or something else than these.
    """
    place, options = _split(url, {"user", "engine"})
    container, _, folder = place.partition("/")
    if not container:
        raise ValueError(f"{url!r}: the container is missing, as in docker://CONTAINER/dir")
    if folder:
        options["workdir"] = "/" + folder.lstrip("/")
    _checked(url, lambda: check_container(user=options.get("user"), workdir=None, env=None))
    return {"container": container, **options}


def run_options(url: str) -> dict[str, Any]:
    """Return the arguments of `DockerBackend.run` that a URL stands for.

    Args:
        url: "docker+run://IMAGE[/dir][?env=NAME=value&engine=&network=bridge&...]" with any field
            of `Sandbox`.

    Raises:
        ValueError: It names no image, or something else than these, or no proper value.
    """
    fields = {field.name: str(field.type) for field in dataclasses.fields(Sandbox)}
    image, options = _split(url, {"engine", *fields})
    if not image:
        raise ValueError(f"{url!r}: the image is missing, as in docker+run://IMAGE/dir")
    for name, text in options.items():
        if name in fields:
            options[name] = _value(url, name, text, fields[name])
    given = {name: value for name, value in options.items() if name in fields}
    _checked(url, lambda: Sandbox(**given))
    return {"image": image, **options}


def _split(url: str, known: set[str]) -> tuple[str, dict[str, Any]]:
    place, _, query = url.partition("://")[2].partition("?")
    options: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "env":
            variable, equals, text = value.partition("=")
            if not (variable and equals):
                raise ValueError(f"{url!r}: env is NAME=value, not {value!r}")
            options.setdefault("env", {})[variable] = text
        elif name in known:
            options[name] = value
        else:
            names = ", ".join(sorted(known | {"env"}))
            raise ValueError(f"{url!r}: there is no option {name!r}; there are {names}")
    return unquote(place), options


def _checked(url: str, check: Callable[[], object]) -> None:
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{url!r}: {error}") from None


def _value(url: str, name: str, text: str, kind: str) -> Any:
    try:
        if kind == "bool":
            return _FLAGS[text.lower()]
        if kind.startswith("tuple"):
            return tuple(word for word in text.split(",") if word)
        kinds: dict[str, Callable[[str], Any]] = {"int": int, "float": _finite}
        return kinds.get(kind, str)(text)
    except (KeyError, ValueError):
        what = {"bool": "true or false", "int": "a whole number"}.get(kind, "a number")
        raise ValueError(f"{url!r}: {name} is {what}, not {text!r}") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
