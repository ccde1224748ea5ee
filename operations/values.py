"""The values that cross between tools and the places where they act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = [
    "DirectoryListing",
    "Entry",
    "EntryKind",
    "ExecResult",
    "FileVersion",
    "GlobResult",
    "GrepContext",
    "GrepMatch",
    "GrepQuery",
    "GrepResult",
    "LineWindow",
    "OutputSnapshot",
    "Progress",
    "StopSignal",
    "TargetFacts",
    "VersionedContent",
    "WriteResult",
]

EntryKind = Literal["file", "directory", "symlink", "fifo", "socket", "device", "other"]


class StopSignal(Protocol):
    """Tell an operation that its caller wants it to end early and say what it had."""

    def is_set(self) -> bool:
        """Return True once the caller has asked to stop; it never goes back to False."""
        ...

    async def wait(self) -> None:
        """Return once `is_set()` is True, at once if it already is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What connecting to a target told about it; no later trip is needed for these.

    Attributes:
        home: The absolute home directory of the user that operations run as.
        machine_id: Equal for two backends that act on the same filesystem, and for no others.
        platform: `sys.platform` of the target ("linux"), or "memory".
        shell: The program that runs commands ("bash", "sh"), or None where there is none.
        capabilities: Names of what the target has: "rg", "subreaper", "kept_output", ...
        umask: The creation mask of the user that operations run as.
    """

    home: str
    machine_id: str
    platform: str
    shell: str | None
    capabilities: frozenset[str] = frozenset()
    umask: int = 0o022


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long operation has come.

    Attributes:
        done: Units finished so far (bytes for reads, files for searches).
        total: Units in all, or None while that is unknown.
        found: Results so far, where the operation looks for something.
    """

    done: int
    total: int | None = None
    found: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWindow:
    """A run of whole lines of one file, and what the scan learned about the file.

    A line ends at LF only. `data` holds the window's raw bytes with their line endings, never a
    byte order mark. For UTF-16 and UTF-32 the lines were found in units of that encoding.

    Attributes:
        kind: "text", "binary" (NUL bytes in the first 8 KiB and no byte order mark), or "image".
        data: Raw bytes of the lines; empty for "binary" and "image".
        start: 1-based number of the first line in `data`.
        lines: Number of lines in `data`.
        total_lines: Number of lines in the whole file (0 for an empty one); 0 unless "text".
        size: Bytes in the whole file, as read (not as stat tells: /proc says 0).
        encoding: "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le" or "utf-32-be":
            told by the byte order mark, "utf-8" when there is none (not proof of validity).
        mime_type: For "image" and known "binary" formats, by content.
        stopped_by: "lines" or "bytes" when the limit ended the window, None at the end of file.
        long_line_bytes: Size of the line at `start`, its ending included, when it alone is over
            `max_bytes` (then `lines` is 0 and `data` is empty), else 0.
    """

    kind: Literal["text", "binary", "image"]
    data: bytes = b""
    start: int = 1
    lines: int = 0
    total_lines: int = 0
    size: int = 0
    encoding: str = "utf-8"
    mime_type: str | None = None
    stopped_by: Literal["lines", "bytes"] | None = None
    long_line_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """Identify one state of one file: what it is and what it held.

    Attributes:
        device: Device number of the file on the target.
        inode: Inode number of the file on the target.
        digest: SHA-256 of the content, 32 bytes.
    """

    device: int
    inode: int
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedContent:
    """The whole content of a file and the version to hand back when replacing it."""

    content: bytes
    version: FileVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """How a file was written.

    Attributes:
        created: True when no file was there before.
        atomic: True when the content was put in place by one rename.
        reason: Why it was not atomic ("hard_links", "owner", "attributes", "mount_point",
            "folder_not_writable"), or None.
    """

    created: bool
    atomic: bool = True
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSnapshot:
    """New output of a running command since the last snapshot, cut to its tail.

    Attributes:
        data: The newest raw bytes, at most what the caller asked to see.
        start: Position of `data` in the whole output, in bytes. A gap to the end of the last
            snapshot means that the bytes between stayed on the target.
        total_bytes: Bytes that the command has printed so far.
        total_lines: LF bytes among them.
    """

    data: bytes
    start: int
    total_bytes: int
    total_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """How a command ended, and what is left of it.

    Attributes:
        ended: "exited" (see exit_code), "signalled" (see signal), "timeout", "stopped", or "lost"
            (how it ended cannot be known: an error, never success).
        exit_code: 0-255 when `ended` is "exited", else None.
        signal: Signal number that ended the shell when `ended` is "signalled", else None.
        total_bytes: Bytes printed on stdout and stderr together.
        total_lines: LF bytes among them.
        kept_path: File on the target that holds the whole output, when there is one.
        kept_bytes: Bytes in that file (less than total_bytes when the cap was reached).
        dropped: Why there is no kept file although one was wanted, or None.
        killed: "none" (nothing had to be killed), "killed" (nothing of the command lives) or
            "unconfirmed" (the kill could not be verified).
        survivors: Names of processes that were seen to outlive the kill.
        background: Processes of the command that go on after its shell has exited.
        shell: The program that ran the command, as "bash" or "sh".
        left_out: Names of environment variables of the host that were not passed on.
        duration_s: Seconds from start to end, by the target's monotonic clock.
    """

    ended: Literal["exited", "signalled", "timeout", "stopped", "lost"]
    exit_code: int | None = None
    signal: int | None = None
    total_bytes: int = 0
    total_lines: int = 0
    kept_path: str | None = None
    kept_bytes: int = 0
    dropped: str | None = None
    killed: Literal["none", "killed", "unconfirmed"] = "none"
    survivors: tuple[str, ...] = ()
    background: int = 0
    shell: str = "bash"
    left_out: tuple[str, ...] = ()
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepQuery:
    """A search for lines; the dialect of `pattern` is documented in `backends.engine.dialect`.

    Attributes:
        pattern: Regular expression, or plain text when `literal`.
        path: File or folder to search; absolute, or beginning with `~/`.
        glob: Only files whose path relative to `path` fits (rules of `find`); None for all.
        ignore_case: Fold case by character.
        literal: Take `pattern` as it stands.
        context: Lines shown before and after each match, 0 or more.
        limit: Matching lines wanted, 1 or more; the first ones in order of path, then line.
        max_line_chars: Longer lines are cut to this many characters around the match.
        timeout_s: Seconds until the search ends with SearchTimeout.
    """

    pattern: str
    path: str
    glob: str | None = None
    ignore_case: bool = False
    literal: bool = False
    context: int = 0
    limit: int = 100
    max_line_chars: int = 500
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepContext:
    """A line near a match."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepMatch:
    """One matching line.

    Attributes:
        path: Relative to the query's path; the file's own name when that is a file. Bytes that
            are not UTF-8 stand as lone surrogates (PEP 383).
        line: 1-based line number.
        text: The line without its ending, cut around the match when it is long. Bytes that are
            not UTF-8 stand as U+FFFD.
        before: Context lines above, in order, without those that are matches themselves.
        after: Context lines below, in order, without those that are matches themselves.
        cut: True when `text` is not the whole line.
    """

    path: str
    line: int
    text: str
    before: tuple[GrepContext, ...] = ()
    after: tuple[GrepContext, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepResult:
    """What a search found, in order of path (by code point), then line.

    Attributes:
        matches: At most `limit` matching lines.
        more: True when at least one further line matches.
        files_searched: Files that were looked at, less `binary_skipped`; None where the search
            ended early.
        binary_skipped: Files that match but are left out since they hold NUL bytes; at least this
            many when `more`.
        unreadable: Paths relative to the query's path that could not be read, sorted, at most 20.
        unreadable_total: How many there were.
        engine: "rg", "python" or another name of what did the work.
    """

    matches: tuple[GrepMatch, ...] = ()
    more: bool = False
    files_searched: int | None = None
    binary_skipped: int = 0
    unreadable: tuple[str, ...] = ()
    unreadable_total: int = 0
    engine: str = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobResult:
    """Paths that fit a glob, relative to its root, sorted by code point; folders end with "/".

    Attributes:
        paths: At most `limit` paths. Bytes that are not UTF-8 stand as lone surrogates (PEP 383).
        more: True when at least one further path fits.
        ignored: How many further paths would have fitted had ignore rules not left them out;
            counted only when `paths` is empty, and only for paths whose folder is not itself
            ignored or for a pattern without wildcards.
        unreadable: Folders that could not be read, sorted, at most 20.
        unreadable_total: How many there were.
    """

    paths: tuple[str, ...] = ()
    more: bool = False
    ignored: int = 0
    unreadable: tuple[str, ...] = ()
    unreadable_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder.

    Attributes:
        name: The name alone. Bytes that are not UTF-8 stand as lone surrogates (PEP 383).
        kind: What the name itself is (a symlink is "symlink", whatever it points to).
        link_target: Text of a symlink, else None.
        broken: True for a symlink whose target does not exist.
    """

    name: str
    kind: EntryKind
    link_target: str | None = None
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryListing:
    """Entries of one folder, sorted without regard to case, then by code point.

    Attributes:
        entries: At most `limit` of them.
        total: How many the folder holds.
    """

    entries: tuple[Entry, ...] = ()
    total: int = 0
