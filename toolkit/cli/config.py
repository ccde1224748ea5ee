"""Targets with names: `[targets.web1]` with `url = "ssh://..."` in a configuration file.

Two files are read: `config.toml` in the user's configuration folder, and `remotehands.toml` of the
project, which is looked for from the current folder upwards until there is a `.git`. What the user
has named counts more: a project that was fetched from somewhere cannot change where a name leads.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.cli.shown import shown

__all__ = ["named_targets", "project_file", "url_of", "user_file"]

PROJECT_FILE, USER_FILE = "remotehands.toml", "config.toml"
_MOST_BYTES = 1 << 20


def url_of(text: str) -> str:
    """Return the URL that a name stands for, and any other text as it is.

    Raises:
        ValueError: It is a name that nobody has given; the text says which there are.
    """
    if ":" in text or text.startswith("@") or not text:
        return text
    targets = named_targets()
    if text in targets:
        return targets[text]
    known = ", ".join(shown(name) for name in sorted(targets)) or "no target has one"
    raise ValueError(
        f"{text!r} is neither a target, as ssh://{shown(text)} or local:, nor a name that "
        f"{PROJECT_FILE} or {user_file()} gives to one (names: {known})"
    )


def named_targets() -> dict[str, str]:
    """Return the URL of each named target.

    Raises:
        ValueError: A file is not as it should be; the text says where.
    """
    found: dict[str, str] = {}
    for file in _files():
        for name, url in _read(file).items():
            found.setdefault(name, url)
    return found


def user_file() -> Path:
    """Return where the user's file is, or would be."""
    from platformdirs import user_config_path

    return user_config_path("remotehands") / USER_FILE


def _files() -> Iterator[Path]:
    """Yield the files that are there, the one that counts most first."""
    if user_file().is_file():
        yield user_file()
    project = project_file(PROJECT_FILE)
    if project is not None:
        yield project


def project_file(name: str) -> Path | None:
    """Return the file of a name in the current folder or above it, up to the top of a work tree."""
    folder = Path.cwd()
    for above in (folder, *folder.parents):
        if (above / name).is_file():
            return above / name
        if (above / ".git").exists():
            return None
    return None


def _read(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            content = tomllib.loads(opened.read(_MOST_BYTES).decode())
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    tables = content.get("targets", {})
    if not isinstance(tables, dict):
        raise ValueError(
            f'{file}: targets has to be tables, as in [targets.web1] url = "ssh://..."'
        )
    return {name: _url(file, name, table) for name, table in tables.items()}


def _url(file: Path, name: str, table: Any) -> str:
    where = f"{file}: [targets.{shown(name)}]"
    if ":" in name or name.startswith("@") or os.sep in name:
        raise ValueError(f"{where}: a name has no colon, no slash, and begins with no @")
    if not isinstance(table, dict) or not isinstance(table.get("url"), str):
        raise ValueError(f'{where}: url is missing, as in url = "ssh://deploy@web1/srv/app"')
    if unknown := sorted(set(table) - {"url"}):
        raise ValueError(f"{where}: {shown(unknown[0])!r} is not known; there is url")
    url: str = table["url"]
    if ":" not in url:
        raise ValueError(f"{where}: url {shown(url)!r} has no scheme, as ssh: in ssh://web1")
    return url
