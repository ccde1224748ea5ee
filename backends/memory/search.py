"""Run the engine's search on a tree in memory, in a thread or, where it may hang, in a process.

A regular expression of Python's holds the interpreter's lock and cannot be interrupted, so one
that backtracks without end would stop the whole program. Before a search the worst case is
estimated from the pattern and the files; if that is more than about a second, the search runs in
a child process, which the time limit kills.
"""

from __future__ import annotations

import errno
import marshal
import os
import subprocess
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import backends
from backends.engine import dialect, search
from backends.engine.faults import Fault
from backends.engine.walk import keyed
from backends.memory import search_child
from backends.memory.backtracking import worst_case_steps
from backends.memory.nodes import READ
from backends.memory.tree import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backends.memory.nodes import Node, User
    from backends.memory.tree import Tree

__all__ = ["Search", "SearchTree", "View"]

T = TypeVar("T")

#: Python's `re` makes some 10-50 million steps in a second.
_MOST_STEPS = 20_000_000


class SearchTree(Protocol):
    """A tree as the engine's search asks for it; see `backends.engine.walk`."""

    def scan(self, rel: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        """Return the names and kinds in a folder."""
        ...

    def read(self, rel: bytes) -> Iterator[bytes]:
        """Return the content of a file as chunks."""
        ...

    def above(self) -> list[tuple[bytes, bytes]]:
        """Return the .gitignore files above that count."""
        ...


class View:
    """The tree that the engine's search asks for: one folder of a tree that no longer changes.

    Args:
        tree: From `Tree.frozen`.
        root: Absolute path of the folder, without links.
        user: Whose rights are asked for.
    """

    def __init__(self, tree: Tree, root: bytes, user: User) -> None:
        self._tree = tree
        self._root = root
        self._user = user

    def scan(self, rel: bytes) -> tuple[list[bytes], dict[bytes, str]]:
        """Return the names and kinds in a folder.

        Raises:
            OSError: It may not be read.
        """
        node = self._get(rel)
        if not node.is_folder:
            fail(errno.ENOTDIR)
        self._check_readable(node)
        listed: tuple[list[bytes], dict[bytes, str]] = keyed(
            (name, child.kind) for name, child in node.children.items()
        )
        return listed

    def read(self, rel: bytes) -> Iterator[bytes]:
        """Return the content of a file as chunks (one, or none when it is empty).

        Raises:
            OSError: It may not be read.
        """
        node = self._get(rel)
        if node.kind != "file":
            fail(errno.EISDIR if node.is_folder else errno.EINVAL)
        self._check_readable(node)
        return iter([node.content] if node.content else [])

    def above(self) -> list[tuple[bytes, bytes]]:
        """Return the .gitignore files of the folders above that are in the same work tree.

        Returns:
            (path of the root below that folder with "/" at its end, content), outermost first.
        """
        found = []
        folder, prefix = self._root, b""
        while not self._has(folder, b".git"):
            if folder == b"/":
                return []  # no work tree, so nothing above has a say
            folder, name = os.path.split(folder)
            prefix = name + b"/" + prefix
            content = self._ignore_file(folder)
            if content is not None:
                found.append((prefix, content))
        return found[::-1]

    def _get(self, rel: bytes) -> Node:
        path = os.path.join(self._root, rel) if rel else self._root
        return self._tree.get(path, self._user, follow=False)

    def _check_readable(self, node: Node) -> None:
        if not self._user.may(node, READ):
            fail(errno.EACCES)

    def _has(self, folder: bytes, name: bytes) -> bool:
        try:
            self._get(os.path.join(folder, name))
        except OSError:
            return False
        return True

    def _ignore_file(self, folder: bytes) -> bytes | None:
        try:
            return b"".join(self.read(os.path.join(folder, b".gitignore")))
        except OSError:
            return None


class Search:
    """One search, to be run in a thread; `stop` ends it from another.

    Args:
        tree: Where to look.
        emit: Takes the parts of the answer, as the engine's search gives them, in the thread.
    """

    def __init__(self, tree: SearchTree, emit: Callable[[dict[str, Any]], None]) -> None:
        self._tree = tree
        self._emit = emit
        self._stopped = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """Make the search end soon; for when nobody waits for it any more."""
        self._stopped.set()
        if self._child is not None:
            self._child.kill()

    def find(self, query: dict[str, Any]) -> dict[str, Any]:
        """Find names; return the summary.

        Raises:
            Fault: As the engine's search.
        """
        summary: dict[str, Any] = search.find(
            self._tree, query, self._emit, cancelled=self._stopped.is_set
        )
        return summary

    def grep(self, query: dict[str, Any], file: bytes | None) -> dict[str, Any]:
        """Find lines; return the summary.

        Args:
            query: As the engine's search takes it.
            file: The only name to search in the tree, or None for all in it.

        Raises:
            Fault: As the engine's search.
        """
        regex = dialect.parse(query["pattern"], query["literal"], query["ignore_case"])
        deadline = time.monotonic() + query["timeout_s"]
        if worst_case_steps(regex.line, 1, 2) > 1:
            folders, files = self._everything(file)
            total, longest = _size(files.values())
            if worst_case_steps(regex.line, total, longest) > _MOST_STEPS:
                request = {
                    "query": query,
                    "folders": folders,
                    "files": files,
                    "above": self._tree.above(),
                    "file": file,
                }
                return self._in_child(request, deadline)
        summary: dict[str, Any] = search.grep(
            self._tree, query, self._emit, cancelled=self._stopped.is_set, file=file
        )
        return summary

    def _everything(
        self, file: bytes | None
    ) -> tuple[dict[bytes, tuple[list[bytes], dict[bytes, str]] | None], dict[bytes, bytes | None]]:
        """Return all folders and files as plain values; None where unreadable."""
        folders: dict[bytes, tuple[list[bytes], dict[bytes, str]] | None] = {}
        files: dict[bytes, bytes | None] = {}
        if file is not None:
            return {}, {file: _or_none(partial(self._whole, file))}
        todo = [b""]
        while todo:
            rel = todo.pop()
            found = folders[rel] = _or_none(partial(self._tree.scan, rel))
            keys, kinds = found or ([], {})
            for key in keys:
                path = os.path.join(rel, key)
                if key.endswith(b"/"):
                    todo.append(path[:-1])
                elif key not in kinds:
                    files[path] = _or_none(partial(self._whole, path))
        return folders, files

    def _whole(self, rel: bytes) -> bytes:
        return b"".join(self._tree.read(rel))

    def _in_child(self, request: dict[str, Any], deadline: float) -> dict[str, Any]:
        root = os.path.dirname(os.path.dirname(os.path.abspath(backends.__file__)))
        # -I and -S: nothing of the user's or of the folder we are in gets into the child.
        argv = [sys.executable, "-I", "-S", search_child.__file__, root]
        with subprocess.Popen(  # noqa: S603 - our own file by our own interpreter
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            self._child = child
            if self._stopped.is_set():
                child.kill()
            try:
                output, _ = child.communicate(
                    marshal.dumps(request), timeout=max(0.0, deadline - time.monotonic())
                )
            except subprocess.TimeoutExpired:
                child.kill()
                raise Fault("search_timeout", request["query"]["timeout_s"]) from None
            finally:
                self._child = None
        if self._stopped.is_set():
            raise Fault("cancelled")
        answer = marshal.loads(output)  # noqa: S302 - from our own child
        if "fault" in answer:
            code, arguments = answer["fault"]
            raise Fault(code, *arguments)
        for part in answer["parts"]:
            self._emit(part)
        summary: dict[str, Any] = answer["summary"]
        return summary


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except OSError:
        return None


def _size(contents: Iterable[bytes | None]) -> tuple[int, int]:
    """Return (bytes in all, bytes of the longest line)."""
    total = longest = 0
    for content in contents:
        if content:
            total += len(content)
            longest = max(longest, *map(len, content.split(b"\n")))
    return total, longest
