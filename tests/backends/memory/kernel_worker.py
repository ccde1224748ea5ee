"""Plays actions with the engine's functions on a real filesystem; a script of the test beside it.

`python kernel_worker.py FOLDER` shuts itself up in FOLDER (chroot), so that no ".." leads out of
it. It takes pickled (uid, actions) on stdin, plays each list in an empty folder "/", and answers
with the pickled outcomes and the tree that is there in the end.
"""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from backends.engine import listing, reading, writing
from backends.engine.faults import Fault
from backends.engine.place import Place


def outcome(call: Any, *args: Any) -> Any:
    """Return what a call gives or raises, as a comparable value."""
    try:
        return "gave", call(*args)
    except Fault as fault:
        return fault.code, fault.arguments
    except OSError as error:
        return "errno", error.errno


def play(place: Any, actions: list[tuple[Any, ...]]) -> list[Any]:
    """Do every action; return what came of each."""
    outcomes = []
    for name, *args in actions:
        if name == "replace":
            path, content, make, expect = args
            version = outcome(place.version, path) if expect else ("gave", None)
            known = version[1] if version[0] == "gave" else None
            done = outcome(place.replace, path, content, make, known)
            outcomes.append((version[0], done))
        else:
            outcomes.append(outcome(getattr(place, name), *args))
    return outcomes


class OnDisk:
    """The engine's functions on the filesystem, and the kernel's calls to prepare it."""

    symlink = staticmethod(lambda path, target: os.symlink(target, path))
    link = staticmethod(lambda old, new: os.link(old, new, follow_symlinks=False))
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    chmod = staticmethod(os.chmod)

    def __init__(self) -> None:
        self.place = Place(b"/", b"/")

    def replace(self, path: bytes, content: bytes, make: bool, expected: Any) -> Any:
        """Replace a file."""
        return writing.replace_file(
            self.place, path, writing.BytesContent(content), make_parents=make, expected=expected
        )

    def version(self, path: bytes) -> Any:
        """Return what to expect of a file."""
        told = reading.read_file(self.place, path, lambda _: None, 1 << 20, digest=True)
        return [told["device"], told["inode"], told["digest"]]

    def make(self, path: bytes) -> None:
        """Make a folder."""
        writing.make_directory(self.place, path)

    def read(self, path: bytes) -> bytes:
        """Read a file."""
        chunks: list[bytes] = []
        reading.read_file(self.place, path, chunks.append, 1 << 20)
        return b"".join(chunks)

    def access(self, path: bytes) -> None:
        """Look whether a file may be read."""
        reading.access(self.place, path)

    def list(self, path: bytes) -> Any:
        """List a folder."""
        return listing.list_directory(self.place, path, 5)

    def exists(self, path: bytes) -> Any:
        """Look whether something is there."""
        return listing.exists(self.place, path)

    def is_directory(self, path: bytes) -> Any:
        """Look whether a folder is there."""
        return listing.is_directory(self.place, path)


def picture() -> dict[bytes, Any]:
    """Return every name with its mode, links, and content or target."""
    found: dict[bytes, Any] = {}
    for folder, folders, files in os.walk(b"/"):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = None
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(info.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            links = None if stat.S_ISDIR(info.st_mode) else info.st_nlink
            found[path] = stat.S_IMODE(info.st_mode), links, content
    return found


def clear() -> None:
    """Empty the folder."""
    for entry in os.scandir(b"/"):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def main() -> None:
    """Answer requests until stdin ends."""
    os.umask(0o022)
    os.chroot(sys.argv[1])
    os.chdir("/")
    while True:
        try:
            uid, actions = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        clear()
        os.chmod("/", 0o755)
        os.chown("/", uid, uid)
        os.setegid(uid)
        os.seteuid(uid)
        try:
            place = OnDisk()
            outcomes = play(place, actions)
            place.place.close()
        finally:
            os.seteuid(0)
            os.setegid(0)
        pickle.dump((outcomes, picture()), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
