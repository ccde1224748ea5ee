"""OpenSSH's configuration files, read as OpenSSH reads them: words, blocks, included files."""

from __future__ import annotations

import glob
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asyncssh.config import SSHClientConfig

from backends.ssh.faults import Unusable

__all__ = ["ConfigReader", "split_words"]

_MOST_INCLUDES = 16
_MOST_PORT = 65535
_MOST_S = 2**31 - 1
_LINE = re.compile(r"([^\s=]+)\s*=?\s*(.*)", re.DOTALL)
_PORT = re.compile(r"[0-9]{1,5}")
_TOKEN = re.compile(r"%(.)")
_TIME = re.compile(r"(?=.)(?:[0-9]{1,10}[smhdw])*(?:[0-9]{1,10})?", re.IGNORECASE)
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BLOCKS = ("host", "match")
#: What runs to the end of its line, with any quotes and # that it has.
_WHOLE = ("proxycommand", "remotecommand", "knownhostscommand")
#: What a `Match` asks for without a value.
_ALONE = ("all", "canonical", "final")


def split_words(text: str) -> list[str]:
    r"""Return the words before a comment, where "a b", 'a b' and a\ b are one each.

    Raises:
        ValueError: A quotation does not end.
    """
    words: list[str] = []
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        char, following = text[position], text[position + 1 : position + 2]
        position += 1
        if not quote and char.isspace():
            words += [] if word is None else [word]
            word = None
        elif word is None and char == "#":
            break
        elif char == "\\" and following and following in ("'\"\\" if quote else "'\"\\ "):
            word = (word or "") + following
            position += 1
        elif char == quote or (not quote and char in "'\""):
            word, quote = word or "", "" if quote else char
        else:
            word = (word or "") + char
    if quote:
        raise ValueError(f"a quotation that begins with {quote} does not end")
    return words if word is None else [*words, word]


class ConfigReader(SSHClientConfig):
    """asyncssh's options, in lines as OpenSSH takes them, with the places where they stand.

    Lines of other hosts' blocks are not looked at. What `note` has read is in `said`, as it is
    written; options that neither knows are left out.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.said: dict[str, str] = {}
        self._places: dict[str, tuple[Path, int]] = {}
        self._depth = 0

    def place(self, option: str) -> str:
        """Return the file and line of an option."""
        path, line = self._places[option]
        return f"{path} line {line}"

    def expand(self, text: str) -> str:
        """Return a text with %h, %p, %r and the like replaced.

        Raises:
            ValueError: There is no such token.
        """
        self._set_tokens()
        return _TOKEN.sub(self._expand_token, text)

    def parse(self, path: Path) -> None:
        """Read a file.

        Raises:
            OSError: It cannot be read.
            Unusable: Somebody else can write it, or a file that it includes.
            ConfigParseError: A line that concerns the host has a fault.
        """
        self._tokens = {"%": "%"}
        self._read(path)

    def finish(self) -> None:
        """Expand the values, once all files are read.

        Raises:
            Unusable: One cannot be expanded.
        """
        self._set_tokens()
        for option in self._percent_expand & self._options.keys():
            value: Any = self._options[option]
            try:
                if isinstance(value, list):
                    self._options[option] = [self._expand_val(item) for item in value]
                elif isinstance(value, str):
                    self._options[option] = self._expand_val(value)
            except ValueError as error:
                raise Unusable(f"{self.place(option)}: {option}: {error}") from error

    def _read(self, path: Path) -> None:
        self._path, self._matching = path, True
        # What is no UTF-8 is mostly in comments; in a file's name it leads nowhere.
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            _check_writers(path, os.fstat(file.fileno()))
            for self._line_no, line in enumerate(file, 1):
                self._apply(line.strip())

    def _apply(self, line: str) -> None:
        found = _LINE.fullmatch(line)
        if not line or line.startswith("#"):
            return
        keyword, rest = (found[1].lower(), found[2]) if found else ("", "")
        if (not self._matching and keyword not in _BLOCKS) or keyword not in self._handlers:
            return
        option, handler = self._handlers[keyword]
        try:
            args = [rest] if rest and keyword in _WHOLE else split_words(rest)
        except ValueError as error:
            self._error(f"{option}: {error}")
        if not args:
            self._error(f"{option} needs a value")
        self._places.setdefault(option, (self._path, self._line_no))
        handler(self, option, args)
        if args:
            self._error(f"{option} has more than one value: {' '.join(args)}")

    def note(self, option: str, args: list[str]) -> None:
        """Keep an option as it is written; the first that applies to a host is what holds."""
        self.said.setdefault(option, " ".join(args))
        args.clear()

    def _include(self, _option: str, args: list[str]) -> None:
        if self._depth == _MOST_INCLUDES:
            self._error(f"files include each other more than {_MOST_INCLUDES} deep")
        path, line = self._path, self._line_no
        self._depth += 1
        for pattern in args:
            wanted = self._default_path / Path(pattern).expanduser()
            for file in sorted(glob.glob(str(wanted))):
                if Path(file).is_file():
                    self._read(Path(file))
        self._depth -= 1
        self._path, self._line_no, self._matching = path, line, True
        args.clear()

    def _match(self, option: str, args: list[str]) -> None:
        """Begin a block; what stands after a condition that does not hold is not looked at."""
        matching = True
        for criterion in _criteria(args):
            name = criterion[0].lower().removeprefix("!")
            if not name:
                self._error("a condition of Match has no name")
            if name == "final" and self._final is None:
                self._final = False  # which asks for a second reading
            if not matching:
                continue
            if name == "exec":
                criterion[1:] = [self._expanded(word) for word in criterion[1:]]
            super()._match(option, criterion)
            matching = self._matching
        self._matching = matching
        args.clear()

    def _expanded(self, text: str) -> str:
        try:
            return self.expand(text)
        except ValueError as error:
            self._error(str(error))

    def _set_proxy(self, option: str, args: list[str]) -> None:
        if "ProxyJump" in self._options or "ProxyCommand" in self._options:
            args.clear()  # the first of either is what holds
        else:
            self._set_string(option, args)

    def _set_port(self, option: str, args: list[str]) -> None:
        text = args.pop(0)
        try:
            port = int(text) if _PORT.fullmatch(text) else socket.getservbyname(text, "tcp")
        except OSError:
            port = 0
        if not 0 < port <= _MOST_PORT:
            self._error(f"a port is a number from 1 to {_MOST_PORT}, not {text!r}")
        self._options.setdefault(option, port)

    def _set_time(self, option: str, args: list[str]) -> None:
        """Set a time in seconds; "none" says nothing, so that a later line may."""
        text = args.pop(0)
        if text.lower() == "none":
            return
        parts = re.findall(r"([0-9]+)([a-z]?)", text.lower()) if _TIME.fullmatch(text) else []
        time_s = sum(int(count) * _UNITS_S[unit] for count, unit in parts)
        if not parts or time_s > _MOST_S:
            self._error(f"{option} is a time such as 90, 90s or 1m30s, not {text!r}")
        self._options.setdefault(option, time_s)

    def _set_public_key(self, option: str, args: list[str]) -> None:
        if args[0].lower() in ("unbound", "host-bound"):
            args[0] = "yes"  # it is not tied to a host's key here, which neither demands
        self._set_bool(option, args)

    _handlers = SSHClientConfig._handlers | {  # noqa: SLF001
        "match": ("Match", _match),
        "include": ("Include", _include),
        "port": ("Port", _set_port),
        "connecttimeout": ("ConnectTimeout", _set_time),
        "serveraliveinterval": ("ServerAliveInterval", _set_time),
        "pubkeyauthentication": ("PubkeyAuthentication", _set_public_key),
        "proxyjump": ("ProxyJump", _set_proxy),
        "proxycommand": ("ProxyCommand", _set_proxy),
    }
    _percent_expand = SSHClientConfig._percent_expand | {  # noqa: SLF001
        "UserKnownHostsFile",
        "GlobalKnownHostsFile",
        "HostKeyAlias",
    }


def _criteria(words: list[str]) -> Iterator[list[str]]:
    """Take the conditions of a `Match` apart; a "=" may stand before a value, and within it."""
    rest = iter(words)
    for word in rest:
        name, _, value = word.partition("=")
        if name.lower().removeprefix("!") in _ALONE:
            yield [name]
        elif value:
            yield [name, value]
        else:
            given = next(rest, None)
            given = next(rest, None) if given == "=" else given
            yield [name] if given is None else [name, given.removeprefix("=")]


def _check_writers(path: Path, status: os.stat_result) -> None:
    """Refuse a file that somebody else can have written, as OpenSSH does."""
    if status.st_uid not in (0, os.getuid()):
        raise Unusable(f"{path} belongs to another user (uid {status.st_uid}); use one of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unusable(f"{path} can be written by other users; chmod go-w {path}")
