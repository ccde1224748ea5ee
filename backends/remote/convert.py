"""Plain values from the engine become the values of `operations`, each field checked.

The far end is not trusted: whatever is missing, of another type, or out of range raises
`MalformedReply`, and text and lists are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from backends.remote import checks
from backends.remote.checks import MalformedReply
from operations.values import (
    DirectoryListing,
    Entry,
    EntryKind,
    ExecResult,
    FileVersion,
    GlobResult,
    GrepContext,
    GrepMatch,
    GrepResult,
    LineWindow,
    OutputSnapshot,
    Progress,
    TargetFacts,
    WriteResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MalformedReply",
    "directory_listing",
    "entry",
    "exec_result",
    "file_version",
    "flag",
    "glob_result",
    "grep_match",
    "grep_match_in_context",
    "grep_matches",
    "grep_result",
    "image_mime_type",
    "joined_paths",
    "line_window",
    "listing_of",
    "output_snapshot",
    "path_bytes",
    "path_text",
    "paths",
    "progress",
    "target_facts",
    "write_result",
]

_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_ENTRY_KINDS: Final = get_args(EntryKind)
_ENCODINGS: Final = (
    "utf-8",
    "utf-8-sig",
    "utf-16-le",
    "utf-16-be",
    "utf-32-le",
    "utf-32-be",
)
_REASONS: Final = ("hard_links", "owner", "attributes", "mount_point", "folder_not_writable")
_DIGEST_BYTES = 32
_MAX_PATH_BYTES = 1 << 16
_MAX_NAMES = 1000


def path_bytes(path: str) -> bytes:
    """Return a path as it goes to the engine; lone surrogates become the bytes they stand for.

    Raises:
        ValueError: It has surrogates that stand for no byte, so no file can have that name.
    """
    return path.encode("utf-8", "surrogateescape")


def path_text(value: object) -> str:
    """Return a path or name that came as bytes; bytes that are not UTF-8 become surrogates."""
    if type(value) is not bytes or len(value) > _MAX_PATH_BYTES:
        raise MalformedReply(f"{checks.shown(value)} is not a path")
    return value.decode("utf-8", "surrogateescape")


def paths(value: object) -> list[str]:
    """Return a list of paths that came as bytes."""
    return [path_text(item) for item in checks.list_of(value)]


def joined_paths(value: object, limit: int) -> list[str]:
    """Return at most `limit` paths that came joined by NUL, in one go."""
    if type(value) is not bytes:
        raise MalformedReply(f"{checks.shown(value)} are no paths")
    found = value.decode("utf-8", "surrogateescape").split("\0")
    if len(found) > limit or max(map(len, found)) > _MAX_PATH_BYTES:
        raise MalformedReply("more paths, or longer ones, than were asked for")
    return found


def flag(value: object) -> bool:
    """Return a bool."""
    if type(value) is not bool:
        raise MalformedReply(f"{checks.shown(value)} is not a bool")
    return value


def image_mime_type(value: object) -> str | None:
    """Return the type of an image, or None."""
    return None if value is None else checks.one_of(value, _IMAGE_TYPES)


def file_version(value: object) -> FileVersion:
    """Return the version in the result of `read_file` that was asked for a digest."""
    fields = checks.fields_of(value)
    digest = fields.get("digest")
    if type(digest) is not bytes or len(digest) != _DIGEST_BYTES:
        raise MalformedReply(f"{checks.shown(digest)} is not a digest")
    return FileVersion(
        device=checks.count(fields, "device"), inode=checks.count(fields, "inode"), digest=digest
    )


def write_result(value: object) -> WriteResult:
    """Return the result of `replace_file`."""
    fields = checks.fields_of(value)
    atomic = flag(fields.get("atomic"))
    reason = fields.get("reason")
    return WriteResult(
        created=flag(fields.get("created")),
        atomic=atomic,
        reason=None if reason is None else checks.one_of(reason, _REASONS),
    )


def line_window(value: object, data: bytes) -> LineWindow:
    """Return the result of `read_lines`.

    Args:
        value: The result without "data".
        data: What came as data.
    """
    fields = checks.fields_of(value)
    mime_type = fields.get("mime_type")
    stopped_by = fields.get("stopped_by")
    kinds: tuple[Literal["text", "binary", "image"], ...] = ("text", "binary", "image")
    limits: tuple[Literal["lines", "bytes"], ...] = ("lines", "bytes")
    window = LineWindow(
        kind=checks.one_of(fields.get("kind"), kinds),
        data=data,
        start=checks.count(fields, "start"),
        lines=checks.count(fields, "lines"),
        total_lines=checks.count(fields, "total_lines"),
        size=checks.count(fields, "size"),
        encoding=checks.one_of(fields.get("encoding"), _ENCODINGS),
        mime_type=None if mime_type is None else checks.word(mime_type),
        stopped_by=None if stopped_by is None else checks.one_of(stopped_by, limits),
        long_line_bytes=checks.count(fields, "long_line_bytes"),
    )
    if window.start < 1 or (window.kind == "image" and window.mime_type not in _IMAGE_TYPES):
        raise MalformedReply(f"{checks.shown(value)} is not a window of lines")
    if bool(window.lines) != bool(data) or window.lines > window.total_lines:
        raise MalformedReply(f"{window.lines} lines in {len(data)} bytes cannot be")
    return window


def progress(value: object) -> Progress:
    """Return how far a read ({"done", "total"}) or a search ({"seen", "found"}) has come."""
    fields = checks.fields_of(value)
    done = checks.count(fields, "done" if "done" in fields else "seen")
    total = None if fields.get("total") is None else checks.count(fields, "total")
    return Progress(done=done, total=total, found=checks.count(fields, "found", 0))


def entry(value: object) -> Entry:
    """Return one [name, kind, link target or None, broken] of a folder."""
    name, kind, target, broken = checks.items_of(value, 4)
    text = path_text(name)
    if not text or "/" in text or "\0" in text:
        raise MalformedReply(f"{checks.shown(name)} is not a name in a folder")
    return Entry(
        name=text,
        kind=cast("EntryKind", checks.one_of(kind, _ENTRY_KINDS)),
        link_target=None if target is None else path_text(target),
        broken=flag(broken),
    )


def directory_listing(entries: Iterable[object], value: object) -> DirectoryListing:
    """Return the result of `list_directory`.

    Args:
        entries: What came as entries, in order.
        value: The result, of which "total" counts.
    """
    return listing_of(map(entry, entries), value)


def listing_of(entries: Iterable[Entry], value: object) -> DirectoryListing:
    """Return the result of `list_directory` of which the entries are converted already."""
    found = tuple(entries)
    total = checks.count(checks.fields_of(value), "total")
    if total < len(found):
        raise MalformedReply(f"{len(found)} entries of {total} cannot be")
    return DirectoryListing(entries=found, total=total)


def output_snapshot(value: object, tail_bytes: int) -> OutputSnapshot:
    """Return a part of `exec_tail`, which was asked for the last `tail_bytes`."""
    fields = checks.fields_of(value)
    data = fields.get("data")
    if type(data) is not bytes or len(data) > tail_bytes:
        raise MalformedReply(f"{checks.shown(data)} is not the output's tail")
    snapshot = OutputSnapshot(
        data=data,
        start=checks.count(fields, "start"),
        total_bytes=checks.count(fields, "total_bytes"),
        total_lines=checks.count(fields, "total_lines"),
    )
    if snapshot.start + len(data) > snapshot.total_bytes:
        raise MalformedReply(f"{len(data)} bytes at {snapshot.start} are beyond the output's end")
    return snapshot


def exec_result(value: object) -> ExecResult:
    """Return the result of `exec` or `exec_tail`."""
    fields = checks.fields_of(value)
    kept_path = fields.get("kept_path")
    dropped = fields.get("dropped")
    endings: tuple[Literal["exited", "signalled", "timeout", "stopped", "lost"], ...] = (
        "exited",
        "signalled",
        "timeout",
        "stopped",
        "lost",
    )
    kills: tuple[Literal["none", "killed", "unconfirmed"], ...] = ("none", "killed", "unconfirmed")
    ended = checks.one_of(fields.get("ended"), endings)
    return ExecResult(
        ended=ended,
        exit_code=checks.number_when(fields, "exit_code", 255, wanted=ended == "exited"),
        signal=checks.number_when(fields, "signal", 127, wanted=ended == "signalled"),
        total_bytes=checks.count(fields, "total_bytes"),
        total_lines=checks.count(fields, "total_lines"),
        kept_path=None if kept_path is None else path_text(kept_path),
        kept_bytes=checks.count(fields, "kept_bytes"),
        dropped=None if dropped is None else checks.word(dropped),
        killed=checks.one_of(fields.get("killed"), kills),
        survivors=checks.words(fields.get("survivors")),
        background=checks.count(fields, "background"),
        shell=checks.word(fields.get("shell")),
        left_out=checks.words(fields.get("left_out", [])),
        duration_s=checks.seconds(fields.get("duration_s")),
    )


def grep_matches(value: object) -> list[GrepMatch]:
    """Return the matches that a running search has found since it told the last ones."""
    return [grep_match(item) for item in checks.list_of(value)]


def grep_match(value: object) -> GrepMatch:
    """Return one [path, line, text, cut] of a running search."""
    return grep_match_in_context([*checks.items_of(value, 4), [], []])


def grep_match_in_context(value: object) -> GrepMatch:
    """Return one [path, line, text, cut, before, after] of a finished search."""
    path, line, text, cut, before, after = checks.items_of(value, 6)
    return GrepMatch(
        path=path_text(path),
        line=checks.line_number(line),
        text=checks.text(text),
        before=_context(before),
        after=_context(after),
        cut=flag(cut),
    )


def grep_result(matches: Iterable[GrepMatch], value: object) -> GrepResult:
    """Return the result of `grep`.

    Args:
        matches: The final matches, in order.
        value: The summary.
    """
    fields = checks.fields_of(value)
    searched = fields.get("files_searched")
    unreadable = tuple(paths(fields.get("unreadable")))
    return GrepResult(
        matches=tuple(matches),
        more=flag(fields.get("more")),
        files_searched=None if searched is None else checks.count(fields, "files_searched"),
        binary_skipped=checks.count(fields, "binary_skipped"),
        unreadable=unreadable[:_MAX_NAMES],
        unreadable_total=max(checks.count(fields, "unreadable_total"), len(unreadable)),
        engine=checks.word(fields.get("engine")),
    )


def glob_result(found: Iterable[str], value: object) -> GlobResult:
    """Return the result of `find`.

    Args:
        found: The paths, in order.
        value: The summary.
    """
    fields = checks.fields_of(value)
    unreadable = tuple(paths(fields.get("unreadable")))
    return GlobResult(
        paths=tuple(found),
        more=flag(fields.get("more")),
        ignored=checks.count(fields, "ignored", 0),
        unreadable=unreadable[:_MAX_NAMES],
        unreadable_total=max(checks.count(fields, "unreadable_total"), len(unreadable)),
    )


def target_facts(value: object) -> TargetFacts:
    """Return the facts that the engine tells when it says hello."""
    fields = checks.fields_of(value)
    shell = fields.get("shell")
    home = path_text(fields.get("home"))
    if not home.startswith("/") or "\0" in home:
        raise MalformedReply(f"{checks.shown(home)} is not a home directory")
    return TargetFacts(
        home=home,
        machine_id=checks.word(fields.get("machine_id")),
        platform=checks.word(fields.get("platform")),
        shell=None if shell is None else checks.word(shell),
        capabilities=frozenset(checks.words(fields.get("capabilities"))),
        umask=checks.count(fields, "umask") & 0o777,
    )


def _context(value: object) -> tuple[GrepContext, ...]:
    lines = []
    for item in checks.list_of(value):
        line, text = checks.items_of(item, 2)
        lines.append(GrepContext(line=checks.line_number(line), text=checks.text(text)))
    return tuple(lines)
