"""What a call comes to: the single acts that rules are held against."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from toolkit.paths import resolve_path
from toolkit.policy.commands import parse_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.policy.commands import ParsedCommand, SimpleCommand
    from toolkit.policy.path_use import Access
    from toolkit.policy.words import Word

__all__ = ["Act", "Place", "acts_of"]

_MOST_FOLDERS = 8
#: The tools whose argument `path` is a path, what they do to it, and whether to all beneath it.
_PATH_TOOLS: dict[str, tuple[Access, bool]] = {
    "read": ("read", False),
    "ls": ("read", False),
    "grep": ("read", True),
    "find": ("read", True),
    "write": ("write", False),
    "edit": ("write", False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where calls act.

    Attributes:
        cwd: The absolute working folder of the tools.
        home: The absolute home folder of the target's user.
        target: The target's URL, as "local:" or "ssh://web1".
    """

    cwd: str
    home: str
    target: str = "local:"

    def canonical(self, path: str) -> str:
        """Return an absolute, lexically normal path; symlinks are the target's business.

        Args:
            path: Absolute, or beginning with "~" for the home folder, or relative.
        """
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        path = posixpath.normpath(posixpath.join(self.cwd, path))
        return "/" + path.lstrip("/")  # normpath keeps two slashes in front


@dataclass(frozen=True, kw_only=True)
class Act:
    """One thing that a call would do.

    Attributes:
        kind: "path", "command", "unknown" (nobody can say what), or "call" (nothing is known of
            it but the tool).
        shown: The act in words: "write /work/a.txt", "run `rm -r build`".
        access: What is done to `path`; "run" for commands.
        path: The canonical path.
        tree: True when all beneath `path` is meant too.
        command: What runs.
        folders: Where the command may be when it runs.
        source: The whole command that a "command" or "unknown" is in.
    """

    kind: Literal["path", "command", "unknown", "call"]
    shown: str
    access: Access | Literal["run"] | None = None
    path: str | None = None
    tree: bool = False
    command: SimpleCommand | None = None
    folders: tuple[Place, ...] = ()
    source: str = ""

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Paths that the command names, whatever it does with them."""
        words = () if self.command is None else self.command.words
        return tuple(path for word in words for path in _named(word, self.folders))


def acts_of(
    tool: str, arguments: object, place: Place
) -> tuple[tuple[Act, ...], ParsedCommand | None]:
    """Return what a call would do, and its command taken apart if it has one.

    Args:
        tool: The tool's name.
        arguments: Its validated arguments.
        place: Where it acts.

    Raises:
        ToolFailure: The path that it names is none.
    """
    command = getattr(arguments, "command", None)
    if tool == "bash" and isinstance(command, str):
        parsed = parse_command(command)
        acts = tuple(_command_acts(parsed, place))
        return acts or (Act(kind="call", shown="run nothing"),), parsed
    if tool in _PATH_TOOLS:
        access, tree = _PATH_TOOLS[tool]
        given = getattr(arguments, "path", None)
        path = place.canonical(resolve_path(given if isinstance(given, str) else ".", place.cwd))
        return (
            Act(kind="path", shown=f"{access} {path}", access=access, path=path, tree=tree),
        ), None
    return (Act(kind="call", shown=f"call {tool}"),), None


def _command_acts(parsed: ParsedCommand, place: Place) -> Iterator[Act]:
    folders = _folders(parsed, place)
    for unknown in parsed.unknown:
        shown = f"run `{unknown.shown}`, where {unknown.reason}"
        yield Act(
            kind="unknown", shown=shown, access="run", command=unknown.command, source=parsed.text
        )
    if folders is None:
        shown = "change the working folder to one that is not known"
        yield Act(kind="unknown", shown=shown, access="run", source=parsed.text)
        folders = (place,)
    for command in parsed.commands:
        shown = f"run `{command.shown}`"
        yield Act(
            kind="command",
            shown=shown,
            access="run",
            command=command,
            folders=folders,
            source=parsed.text,
        )
    seen: set[tuple[Access, str, bool]] = set()
    for use in parsed.paths:
        for folder in folders:
            path = _path(use.word, folder)
            if path is None:
                if use.access == "read":
                    continue
                shown = f"{use.access} `{use.word.shown}`, a path that is known only when it runs"
                yield Act(kind="unknown", shown=shown, access="run", source=parsed.text)
                break
            if (key := (use.access, path, use.tree)) not in seen:
                seen.add(key)
                yield Act(
                    kind="path",
                    shown=f"{use.access} {path}{' with all beneath it' if use.tree else ''}",
                    access=use.access,
                    path=path,
                    tree=use.tree,
                )


def _folders(parsed: ParsedCommand, place: Place) -> tuple[Place, ...] | None:
    """Return every folder that the command may be in at some time, or None if that is not known."""
    places = [place]
    for word in parsed.folders:
        for each in tuple(places):
            path = _path(word, each)
            if path is None or len(places) > _MOST_FOLDERS:
                return None
            here = Place(cwd=path, home=place.home, target=place.target)
            if here not in places:
                places.append(here)
    return tuple(places)


def _path(word: Word, place: Place) -> str | None:
    text = word.text
    if not text or "\x00" in text:
        return None
    if word.home and text != "~" and not text.startswith("~/"):
        return None  # another user's home
    if word.glob and ".." in text.split("/"):
        return None  # what "*/.." is depends on links
    return place.canonical(text if word.home else f"./{text}" if text[0] == "~" else text)


def _named(word: Word, folders: tuple[Place, ...]) -> Iterator[str]:
    """Yield what a word may mean as a path, also as the value in `--file=a`."""
    if not word.text:
        return
    words = [word]
    if "=" in word.text:
        words.append(word.rest(word.text.index("=") + 1))
    for each in words:
        for folder in folders:
            if (path := _path(each, folder)) is not None:
                yield path
