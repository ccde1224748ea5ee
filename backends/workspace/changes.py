"""What changed in a folder since it was put in, told while its tar goes by."""

from __future__ import annotations

from collections.abc import Iterator

from backends.engine.ignore import IgnoreRules, rules_above
from backends.workspace.archive import Entry, shown
from backends.workspace.baseline import Baseline, Mode, Spool, Version
from backends.workspace.gitpatch import Blob, change, refused
from backends.workspace.packing import of_git
from operations import PathError, TooLarge

__all__ = ["ChangeSink"]

_IGNORE = b".gitignore"


class ChangeSink:
    """See `Sink`: keeps what is not as it was in the baseline. Its methods block.

    Args:
        baseline: The folder as it was.
        max_bytes: See `Limits.max_patch_bytes`.
    """

    def __init__(self, baseline: Baseline, max_bytes: int) -> None:
        self._baseline = baseline
        self._max_bytes = max_bytes
        self._spool = Spool()
        self._versions: dict[bytes, Version] = {}
        self._entry: Entry | None = None
        self._start = 0
        #: What the file still equals; None once it does not.
        self._like: Version | None = None
        self._seen = 0

    def entry(self, entry: Entry) -> None:
        """See `Sink`."""
        path = entry.path
        self._entry = None
        if of_git(path):
            return
        if entry.kind == "link":
            if entry.target in self._versions:
                self._versions[path] = self._versions[entry.target]
        elif entry.kind == "symlink":
            start = self._spool.size
            self._spool.add(entry.target)
            self._versions[path] = Version("120000", self._spool, start, len(entry.target))
        elif entry.kind == "file":
            self._entry, self._start, self._seen = entry, self._spool.size, 0
            like = self._baseline.versions.get(path)
            self._like = like if like is not None and like.size == entry.size else None

    def data(self, piece: memoryview) -> None:
        """See `Sink`; what is as it was takes no room."""
        if self._entry is None:
            return
        if (like := self._like) is not None:
            if like.spool.read(like.start + self._seen, len(piece)) == piece:
                self._seen += len(piece)
                return
            self._like = None
            for part in Version("100644", like.spool, like.start, self._seen).pieces():
                self._spool.add(part)
        self._spool.add(piece)

    def end(self) -> None:
        """See `Sink`."""
        entry, like = self._entry, self._like
        if entry is None:
            return
        mode: Mode = "100755" if entry.mode & 0o100 else "100644"
        if like is not None:
            version = Version(mode, like.spool, like.start, like.size)
        else:
            version = Version(mode, self._spool, self._start, entry.size)
        self._versions[entry.path] = version

    def patch(self) -> bytes:
        """Return the patch from the baseline to what was seen.

        Raises:
            PathError: A name is one that git takes in no patch.
            TooLarge: More has changed than a patch is made of.
        """
        return b"".join(self._changes())

    def close(self) -> None:
        """Free what was kept."""
        self._spool.close()

    def _changes(self) -> Iterator[bytes]:
        old, new = self._baseline.versions, self._versions
        ignored = _Ignored(self._baseline, new) if self._baseline.honour_ignore_files else None
        size = 0
        for path in sorted(old.keys() | new.keys()):
            before, after = old.get(path), new.get(path)
            if before is None and ignored is not None and ignored.holds(path):
                continue
            if _same(before, after):
                continue
            if refused(path, symlink=_is_symlink(before) or _is_symlink(after)):
                raise PathError(shown(path), "has changed, and git takes no such name in a patch")
            size += sum(version.size for version in (before, after) if version is not None)
            if size > self._max_bytes:
                what = f"what has changed in {self._baseline.destination}"
                raise TooLarge(what, size, self._max_bytes)
            yield change(path, _blob(before), _blob(after))


def _same(before: Version | None, after: Version | None) -> bool:
    return (
        before is not None
        and after is not None
        and before.mode == after.mode
        and before.same_content(after)
    )


def _is_symlink(version: Version | None) -> bool:
    return version is not None and version.mode == "120000"


def _blob(version: Version | None) -> Blob | None:
    return None if version is None else Blob(version.mode, version.content())


class _Ignored:
    """Which new files the ignore files leave out, as they are now."""

    def __init__(self, baseline: Baseline, versions: dict[bytes, Version]) -> None:
        self._versions = versions
        self._top = rules_above(baseline.rules_above)
        self._rules: dict[bytes, IgnoreRules | None] = {}
        self._folders: dict[bytes, bool] = {b"": False}

    def holds(self, path: bytes) -> bool:
        """Return True if a file is left out, or a folder that it is in."""
        folder, _, name = path.rpartition(b"/")
        if self._folder_is_out(folder):
            return True
        rules = self._in(folder)
        return rules is not None and bool(rules.ignored(path, name, is_directory=False))

    def _folder_is_out(self, folder: bytes) -> bool:
        parts = folder.split(b"/")
        for count in range(1, len(parts) + 1):
            path = b"/".join(parts[:count])
            if path not in self._folders:
                rules = self._in(b"/".join(parts[: count - 1]))
                self._folders[path] = rules is not None and bool(
                    rules.ignored(path, parts[count - 1], is_directory=True)
                )
            if self._folders[path]:
                return True
        return False

    def _in(self, folder: bytes) -> IgnoreRules | None:
        """Return the rules that hold in a folder."""
        if folder not in self._rules:
            above = self._in(folder.rpartition(b"/")[0]) if folder else self._top
            prefix = folder + b"/" if folder else b""
            own = self._versions.get(prefix + _IGNORE)
            if own is not None and own.mode != "120000":
                above = IgnoreRules(own.content(), prefix, above)
            self._rules[folder] = above
        return self._rules[folder]
