"""The three ways of a folder: into a target, out of it, and out as a patch."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
import anyio.to_thread

from backends.engine.facts import machine_id
from backends.remote.arguments import wire_path
from backends.workspace.archive import ArchiveReader, Limits
from backends.workspace.baseline import Baseline
from backends.workspace.changes import ChangeSink
from backends.workspace.far_end import Prepare, ProgramEnd, Programs
from backends.workspace.packing import Packer, check_folder
from backends.workspace.progress import OnProgress, Reporter
from backends.workspace.unpacking import FolderSink
from operations import (
    DirectoryListing,
    OperationUnsupported,
    PathError,
    PathExists,
    TargetFacts,
)

if TYPE_CHECKING:
    from backends.workspace.memory_end import MemoryEnd

__all__ = ["FolderBackend", "Taken", "put_folder", "take_folder", "take_patch"]

T = TypeVar("T")


class FolderBackend(Protocol):
    """What a place must have; every backend here has it.

    Beside these, `open_program` (see `RemoteBackend`) where it is not a tree in memory.
    """

    @property
    def facts(self) -> TargetFacts | None:
        """See `TargetOperations`."""
        ...

    async def make_directory(self, path: str) -> None:
        """See `WriteOperations`."""
        ...

    async def list_directory(self, path: str, *, limit: int) -> DirectoryListing:
        """See `LsOperations`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was taken out of a target.

    Attributes:
        files: Files, each name of one counted.
        bytes: Bytes of them.
        skipped: A line for each name that was left out, "name: why".
    """

    files: int
    bytes: int
    skipped: tuple[str, ...] = ()


async def put_folder(
    backend: FolderBackend,
    source: str,
    destination: str,
    *,
    honour_ignore_files: bool = False,
    on_progress: OnProgress | None = None,
) -> Baseline:
    """Copy a folder of this machine into a target.

    Files, folders, symlinks (as they are), hard links within the folder, permission bits and
    modification times (in seconds) are kept; setuid, setgid and sticky bits are not. Everything
    belongs to the user that operations run as. Devices, FIFOs and sockets are left out and named.
    What is there when this fails or is cancelled stays there, incomplete.

    Args:
        backend: The target, entered.
        source: The folder's path on this machine.
        destination: Absolute path on the target; made with the folders above it, or empty.
        honour_ignore_files: Leave out what the .gitignore files in the folder, and above it in
            its git work tree, say, and `.git`: what the search tools leave out.
        on_progress: Called on the event loop, at most every 100 ms and at the end.

    Returns:
        What was put in, to close when no patch is wanted any more.

    Raises:
        PathNotFound: There is no `source`; nothing was done.
        PathExists: `destination` is not empty; nothing was done.
        PathError: `destination` is no absolute path, or lies in `source`; nothing was done.
        PathDenied: Something may not be read here, or not be written there; the error names it.
        FileChanged: A file became another while it was read.
        StorageFull: The target has no room.
        OperationUnsupported: The target has no tar, or no way to run one; nothing was done.
        ConnectionLost: The connection ended meanwhile.
    """
    await _in_thread(lambda: check_folder(source))
    await _in_thread(lambda: _check_apart(backend, source, destination))
    baseline = await _in_thread(
        lambda: Baseline(destination, honour_ignore_files=honour_ignore_files)
    )
    try:
        pieces = Packer(source, baseline).pieces()
        reporter = Reporter(on_progress)

        async def next_piece() -> bytes | None:
            # The piece before was sent when the next one is asked for.
            reporter.at(baseline.bytes, baseline.files)
            return await _in_thread(lambda: next(pieces, None))

        await _end(backend, destination).put(_emptiness(backend, destination), next_piece)
        reporter.at(baseline.bytes, baseline.files, last=True)
    except BaseException:
        baseline.close()
        raise
    return baseline


async def take_folder(
    backend: FolderBackend,
    source: str,
    destination: str,
    *,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> Taken:
    """Copy a folder out of a target; the target is not trusted.

    What comes is made beside `destination` and put there by one rename when it is whole; after a
    failure nothing is there. Nothing outside is touched, no symlink is followed, no device made;
    symlinks keep their text, wherever it points. Setuid, setgid and sticky bits and the right of
    others to write are dropped.

    Args:
        backend: The target, entered.
        source: Absolute path of the folder on the target.
        destination: Path on this machine; nothing or an empty folder must be there.
        limits: The most that is taken; None for 16 GiB in a million files.
        on_progress: Called on the event loop, at most every 100 ms and at the end.

    Raises:
        PathNotFound: There is no `source`.
        PathExists: `destination` is not empty.
        PathDenied: Something may not be read there, or not be written here; the error names it.
        FileChanged: Something changed while it was read.
        TooLarge: It is over a limit.
        OutsideRoot: The target sent a path that leads out of the folder.
        NotAnArchive: The target sent what no tar sends.
        OperationUnsupported: The target has no tar, or no way to run one.
        ConnectionLost: The connection ended meanwhile.
    """
    sink = await _in_thread(lambda: FolderSink(destination))
    try:
        reader = ArchiveReader(sink, source, limits or Limits())
        left_out = await _take(backend, source, reader, on_progress)
        await _in_thread(sink.finish)
    finally:
        with anyio.CancelScope(shield=True):
            await _in_thread(sink.close)
    skipped = tuple(sorted([*sink.skipped, *left_out]))
    return Taken(files=reader.files, bytes=reader.bytes, skipped=skipped)


async def take_patch(
    backend: FolderBackend,
    baseline: Baseline,
    *,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> bytes:
    """Return what changed in a folder since it was put in, as a patch of git's.

    `git apply` makes of the folder that was put in the one that is there now, as git sees them:
    contents, symlinks and the right to run; no other modes, no times, no empty folders, nothing
    of `.git`. New files that ignore files leave out are no change if those were honoured when the
    folder was put in. The folder travels as a whole: its contents are compared, not its times.

    Args:
        backend: The target, entered.
        baseline: What `put_folder` returned, not closed.
        limits: As for `take_folder`; None for 256 MiB of changed files, too.
        on_progress: As for `take_folder`.

    Returns:
        The patch; b"" when nothing changed.

    Raises:
        ValueError: The baseline is closed.
        PathError: A name that git takes in no patch has changed.
        TooLarge: More has changed than `limits` accept in a patch.
        OperationError: As `take_folder`.
    """
    if baseline.closed:
        raise ValueError("the baseline is closed; take the patch inside its `with`")
    limits = limits or Limits()
    most = limits.max_patch_bytes
    sink = await _in_thread(lambda: ChangeSink(baseline, most))
    try:
        reader = ArchiveReader(sink, baseline.destination, limits)
        await _take(backend, baseline.destination, reader, on_progress)
        return await _in_thread(sink.patch)
    finally:
        sink.close()


async def _take(
    backend: FolderBackend, source: str, reader: ArchiveReader, on_progress: OnProgress | None
) -> list[str]:
    """Feed a reader; return what was left out."""
    reporter = Reporter(on_progress)

    async def check() -> None:
        await backend.list_directory(source, limit=1)

    async def feed(data: bytes) -> bytes | None:
        rest = await _in_thread(lambda: reader.feed(data))
        reporter.at(reader.bytes, reader.files)
        return rest if reader.ended else None

    left_out = await _end(backend, source).take(check, feed)
    reporter.at(reader.bytes, reader.files, last=True)
    return left_out


def _end(backend: FolderBackend, folder: str) -> ProgramEnd | MemoryEnd:
    """Return the far end that a backend has."""
    from backends.memory import MemoryBackend

    path = _absolute(backend, folder)
    if isinstance(backend, MemoryBackend):
        from backends.workspace.memory_end import MemoryEnd

        return MemoryEnd(backend, os.fsdecode(path))
    if not isinstance(backend, Programs):
        reason = f"{type(backend).__name__} runs no program of ours"
        raise OperationUnsupported("copying a folder", reason)
    return ProgramEnd(backend, folder, path)


def _absolute(backend: FolderBackend, folder: str) -> bytes:
    home = backend.facts.home if backend.facts is not None else "/"
    if folder == "~" or folder.startswith("~/"):
        folder = home + folder[1:]
    if not folder.startswith("/") or "\0" in folder:
        raise PathError(folder, f"{folder!r} is not absolute, as in '/workspace'")
    return wire_path(folder)


def _check_apart(backend: FolderBackend, source: str, destination: str) -> None:
    """See that a folder of this machine does not go into itself: its copy would be copied too."""
    if backend.facts is None or backend.facts.machine_id != machine_id():
        return
    above = os.path.realpath(os.fsencode(source))
    if os.path.realpath(_absolute(backend, destination)).startswith(os.path.join(above, b"")):
        raise PathError(destination, "lies in the folder that would be copied there")


def _emptiness(backend: FolderBackend, folder: str) -> Prepare:
    """Return what makes a folder on the target and sees that nothing is in it."""

    async def prepare() -> None:
        await backend.make_directory(folder)
        if (await backend.list_directory(folder, limit=1)).total:
            raise PathExists(folder, "is not empty; name a folder that is new or empty")

    return prepare


async def _in_thread(call: Callable[[], T]) -> T:
    # A limiter of its own: the shared one may be used up by the caller's threads.
    return await anyio.to_thread.run_sync(call, limiter=anyio.CapacityLimiter(1))
