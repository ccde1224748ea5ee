"""A folder into a target and out again: what arrives, what is refused, what is left behind."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from backends.command import CommandBackend
from backends.local import EngineBackend
from backends.memory import MemoryBackend
from backends.remote.channel import ChannelClosed
from backends.workspace import (
    Baseline,
    FolderProgress,
    Limits,
    TooManyEntries,
    put_folder,
    take_folder,
    take_patch,
)
from backends.workspace.packing import Packer
from operations import (
    ConnectionLost,
    FileChanged,
    OperationUnsupported,
    PathDenied,
    PathError,
    PathExists,
    PathNotDirectory,
    PathNotFound,
    TooLarge,
)
from tests.backends.workspace.trees import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.anyio

NOBODY = 65534


def place(target: Any, tmp_path: Path) -> str:
    """Return a path on the target where nothing is yet."""
    return str(tmp_path / "far" / "work space")


async def test_no_folder_goes_into_itself(target: Any, source: Path) -> None:
    inside = source / "hollow" / "copy"
    if isinstance(target, MemoryBackend):  # whose folders are others
        (await put_folder(target, str(source), str(inside))).close()
        return
    (source.parent / "alias").symlink_to(source)
    for spelled in (inside, source.parent / "alias" / "copy"):
        with pytest.raises(PathError, match="would be copied"):
            await put_folder(target, str(source), str(spelled))
        assert not spelled.exists()


async def test_what_goes_in_comes_out(target: Any, source: Path, tmp_path: Path) -> None:
    far = place(target, tmp_path)
    with await put_folder(target, str(source), far) as baseline:
        assert baseline.skipped == []
        assert await take_patch(target, baseline) == b""
    taken = await take_folder(target, far, str(tmp_path / "out"))
    assert taken.skipped == ()
    assert tree(tmp_path / "out") == tree(source)
    assert taken.files == baseline.files


async def test_a_file_keeps_its_bits_and_loses_the_dangerous_ones(
    target: Any, source: Path, tmp_path: Path
) -> None:
    (source / "a.txt").chmod(0o6777)
    far = place(target, tmp_path)
    (await put_folder(target, str(source), far)).close()
    await take_folder(target, far, str(tmp_path / "out"))
    assert (tmp_path / "out/a.txt").stat().st_mode & 0o7777 == 0o755
    if Path(far).exists():
        assert (Path(far) / "a.txt").stat().st_mode & 0o7777 == 0o777


async def test_a_folder_with_something_in_it_is_not_filled(
    target: Any, source: Path, tmp_path: Path
) -> None:
    far = place(target, tmp_path)
    await target.make_directory(far)
    await target.write_file(f"{far}/mine", b"x")
    with pytest.raises(PathExists, match="not empty"):
        await put_folder(target, str(source), far)
    assert (await target.list_directory(far, limit=9)).total == 1


async def test_an_empty_folder_is_filled(target: Any, source: Path, tmp_path: Path) -> None:
    far = place(target, tmp_path)
    await target.make_directory(far)
    (await put_folder(target, str(source), far)).close()
    (tmp_path / "out").mkdir()
    await take_folder(target, far, str(tmp_path / "out"))
    assert tree(tmp_path / "out") == tree(source)


async def test_a_file_is_no_destination(target: Any, source: Path, tmp_path: Path) -> None:
    await target.make_directory(str(tmp_path / "far"))
    await target.write_file(str(tmp_path / "far/file"), b"")
    with pytest.raises(PathNotDirectory):
        await put_folder(target, str(source), str(tmp_path / "far/file"))
    with pytest.raises(PathNotDirectory):
        await take_folder(target, str(tmp_path / "far/file"), str(tmp_path / "out"))


async def test_a_path_on_the_target_has_to_be_absolute(
    target: Any, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(PathError, match="absolute"):
        await put_folder(target, str(source), "work")
    with pytest.raises(PathError, match="absolute"):
        await take_folder(target, "work", str(tmp_path / "out"))


async def test_a_source_that_is_missing_is_named_and_nothing_is_made(
    target: Any, tmp_path: Path
) -> None:
    far = place(target, tmp_path)
    with pytest.raises(PathNotFound, match="nowhere"):
        await put_folder(target, str(tmp_path / "nowhere"), far)
    assert not await target.exists(far)
    with pytest.raises(PathNotFound):
        await take_folder(target, far, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


async def test_what_is_neither_file_nor_folder_is_named(
    target: Any, source: Path, tmp_path: Path
) -> None:
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(os.path.relpath(source / "socket"))
    far = place(target, tmp_path)
    with await put_folder(target, str(source), far) as baseline:
        assert [line.split(":")[0] for line in sorted(baseline.skipped)] == ["fifo", "socket"]
    if Path(far).exists():
        os.mkfifo(f"{far}/fifo")
    else:
        target.mkfifo(f"{far}/fifo")
    taken = await take_folder(target, far, str(tmp_path / "out"))
    assert [line.split(":")[0] for line in taken.skipped] == ["fifo"]
    (source / "fifo").unlink()
    (source / "socket").unlink()
    assert tree(tmp_path / "out").keys() == tree(source).keys()


async def test_ignore_files_are_honoured_on_request(target: Any, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    source = repository / "part"
    for path, text in {
        ".git/config": "",
        ".gitignore": "*.log\n/part/build/\n",
        "part/module/.git/HEAD": "x",
        "part/.gitignore": "!keep.log\n",
        "part/a.log": "",
        "part/keep.log": "",
        "part/build/out": "",
        "part/src/.gitignore": "/gen\n",
        "part/src/gen/x": "",
        "part/src/main.py": "",
    }.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    far = place(target, tmp_path)
    with await put_folder(target, str(source), far, honour_ignore_files=True) as baseline:
        await take_folder(target, far, str(tmp_path / "out"))
        kept = {b".gitignore", b"keep.log", b"module", b"src", b"src/.gitignore", b"src/main.py"}
        assert tree(tmp_path / "out").keys() == kept
        await target.make_directory(f"{far}/src/gen")
        for name in ("b.log", "src/gen/y", "src/new.py"):
            await target.write_file(f"{far}/{name}", b"x\n")
        patch = await take_patch(target, baseline)
        assert b"src/new.py" in patch
        assert patch.count(b"diff --git") == 1


async def test_without_a_request_everything_is_copied(target: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / ".git").mkdir(parents=True)
    (source / ".git/HEAD").write_text("x")
    (source / ".gitignore").write_text("*\n")
    (source / "a").write_text("x")
    far = place(target, tmp_path)
    with await put_folder(target, str(source), far) as baseline:
        await target.write_file(f"{far}/.git/HEAD", b"what git does is no part of a patch")
        assert await take_patch(target, baseline) == b""
    await take_folder(target, far, str(tmp_path / "out"))
    assert tree(tmp_path / "out").keys() == tree(source).keys()


async def test_progress_rises_to_the_whole(target: Any, source: Path, tmp_path: Path) -> None:
    for number in range(300):
        (source / f"{number}").write_bytes(b"x" * 1000)
    far = place(target, tmp_path)
    into: list[FolderProgress] = []
    out: list[FolderProgress] = []
    baseline = await put_folder(target, str(source), far, on_progress=into.append)
    baseline.close()
    taken = await take_folder(target, far, str(tmp_path / "out"), on_progress=out.append)
    for seen, files in ((into, baseline.files), (out, taken.files)):
        assert [step.files_done for step in seen] == sorted(step.files_done for step in seen)
        assert seen[-1].files_done == files
    assert into[-1].bytes_done == out[-1].bytes_done == baseline.bytes == taken.bytes


async def test_a_patch_needs_an_open_baseline(target: Any, source: Path, tmp_path: Path) -> None:
    baseline = await put_folder(target, str(source), place(target, tmp_path))
    baseline.close()
    with pytest.raises(ValueError, match="closed"):
        await take_patch(target, baseline)


async def test_limits_hold_and_leave_nothing(target: Any, source: Path, tmp_path: Path) -> None:
    far = place(target, tmp_path)
    (await put_folder(target, str(source), far)).close()
    before = set(tmp_path.iterdir())
    with pytest.raises(TooLarge, match="over the limit of 1000 bytes"):
        await take_folder(target, far, str(tmp_path / "out"), limits=Limits(max_bytes=1000))
    with pytest.raises(TooManyEntries, match="5 names are over the limit of 4"):
        await take_folder(target, far, str(tmp_path / "out"), limits=Limits(max_entries=4))
    assert set(tmp_path.iterdir()) == before


async def test_a_destination_that_is_not_empty_is_not_replaced(
    target: Any, source: Path, tmp_path: Path
) -> None:
    far = place(target, tmp_path)
    (await put_folder(target, str(source), far)).close()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    before = set(tmp_path.iterdir())
    with pytest.raises(PathExists, match="not empty"):
        await take_folder(target, far, str(tmp_path / "out"))
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("leads_to", ["folder", "nothing"])
async def test_a_destination_that_is_a_symlink_is_refused_before_anything_moves(
    target: Any, source: Path, tmp_path: Path, leads_to: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "out").symlink_to(leads_to)
    before = set(tmp_path.iterdir())
    with pytest.raises(PathExists, match="is a symlink; name the folder"):
        await take_folder(target, "/no/such/folder", str(tmp_path / "out"))
    assert set(tmp_path.iterdir()) == before


# Targets of this machine --------------------------------------------------------------------


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Give a program that leads to a user who may do nothing."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c"]


@pytest.fixture
def open_folder() -> Any:
    """Give a folder that every user can get to."""
    folder = Path("/tmp") / f"remotehands-{os.urandom(6).hex()}"
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


async def test_everything_belongs_to_the_user_of_the_target(
    nobody: list[str], source: Path, open_folder: Path
) -> None:
    async with CommandBackend(nobody) as backend:
        (await put_folder(backend, str(source), f"{open_folder}/far")).close()
    for path in [open_folder / "far", *(open_folder / "far").rglob("*")]:
        assert (path.lstat().st_uid, path.lstat().st_gid) == (NOBODY, NOBODY)
    assert tree(open_folder / "far") == tree(source)


async def test_a_destination_that_may_not_be_written_is_denied(
    nobody: list[str], source: Path, open_folder: Path
) -> None:
    (open_folder / "far").mkdir()
    async with CommandBackend(nobody) as backend:
        with pytest.raises(PathDenied, match="far/"):
            await put_folder(backend, str(source), f"{open_folder}/far")
        with pytest.raises(PathDenied):
            await put_folder(backend, str(source), f"{open_folder}/far/below")


@pytest.mark.parametrize("tools", ["own", "busybox"])
async def test_a_file_that_may_not_be_read_there_is_named_and_nothing_is_left(
    nobody: list[str],
    tools: str,
    open_folder: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    (open_folder / "far").mkdir()
    (open_folder / "far/a").write_text("x")
    (open_folder / "far/secret").touch(mode=0o600)
    argv = nobody
    if tools == "busybox":
        # Pytest's own folders are closed to others.
        folder = open_folder / "programs"
        shutil.copytree(request.getfixturevalue("busybox_folder"), folder, symlinks=True)
        folder.chmod(0o755)
        argv = [*nobody[:-2], "env", f"PATH={folder}", *nobody[-2:]]
    async with CommandBackend(argv) as backend:
        with pytest.raises(PathDenied, match="far/secret"):
            await take_folder(backend, f"{open_folder}/far", str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("honour", [False, True])
@pytest.mark.parametrize("what", ["file", "folder", "in a folder"])
def test_what_may_not_be_read_here_is_named(what: str, honour: bool, open_folder: Path) -> None:
    (open_folder / "a").write_text("x")
    (open_folder / "secret").mkdir()
    if what == "file":
        (open_folder / "secret/x").touch(mode=0)
    else:
        (open_folder / "secret/x").symlink_to("a")
        (open_folder / "secret").chmod(0 if what == "folder" else 0o744)
    baseline = Baseline("/far", honour_ignore_files=honour)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        with baseline, pytest.raises(PathDenied, match="secret"):
            list(Packer(str(open_folder), baseline).pieces())
    finally:
        os.seteuid(was)


def shrink(path: Path) -> None:
    os.truncate(path, 5)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("change", [shrink, grow, Path.unlink])
def test_a_file_that_changes_while_it_is_read_is_named(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(5 << 20))
    with Baseline("/far", honour_ignore_files=False) as baseline:
        pieces = Packer(str(tmp_path), baseline).pieces()
        next(pieces)
        change(tmp_path / ("b" if change is Path.unlink else "a"))
        with pytest.raises(FileChanged):
            list(pieces)


async def test_a_target_without_tar_says_so_before_anything_is_done(
    busybox_folder: str, source: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    shutil.copytree(busybox_folder, tools, symlinks=True)
    (tools / "tar").unlink()
    far = str(tmp_path / "far")
    async with CommandBackend(["env", f"PATH={tools}", "sh", "-c"]) as backend:
        with pytest.raises(OperationUnsupported, match="no tar"):
            await put_folder(backend, str(source), far)
        assert not await backend.exists(far)
        with pytest.raises(OperationUnsupported, match="no tar"):
            await take_folder(backend, str(source), str(tmp_path / "out"))


async def test_a_backend_with_one_channel_only_says_so(source: Path, tmp_path: Path) -> None:
    async with EngineBackend() as backend:
        with pytest.raises(OperationUnsupported, match="the engine's own channel"):
            await put_folder(backend, str(source), str(tmp_path / "far"))


class Cut:
    """A backend whose channels are lost after so many bytes in a direction."""

    def __init__(self, backend: Any, *, after: int) -> None:
        self._backend = backend
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def open_program(self, argv: Sequence[str]) -> Any:
        return CutChannel(await self._backend.open_program(argv), self._after)


class CutChannel:
    def __init__(self, channel: Any, after: int) -> None:
        self._channel = channel
        self._left = {"send": after, "receive": after}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def send(self, data: bytes) -> None:
        await self._channel.send(data[: self._left["send"]])
        self._left["send"] -= len(data)
        if self._left["send"] < 0:
            await self._channel.close()
            raise ChannelClosed("the wire is cut")

    async def receive(self) -> bytes:
        data: bytes = await self._channel.receive()
        self._left["receive"] -= len(data)
        if self._left["receive"] < 0:
            raise ChannelClosed("the wire is cut")
        return data


async def test_a_connection_that_ends_midway_is_said_to_be_lost(
    source: Path, tmp_path: Path
) -> None:
    far = tmp_path / "far"
    async with CommandBackend(["sh", "-c"]) as backend:
        with pytest.raises(ConnectionLost):
            await put_folder(Cut(backend, after=100_000), str(source), str(tmp_path / "half"))
        (await put_folder(backend, str(source), str(far))).close()
        before = set(tmp_path.iterdir())
        with pytest.raises(ConnectionLost):
            await take_folder(Cut(backend, after=100_000), str(far), str(tmp_path / "out"))
        assert set(tmp_path.iterdir()) == before
    await gone(str(tmp_path))


def running(text: str) -> list[bytes]:
    """Return the command lines of programs that a text is in."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if text.encode() in line and b"tar\0" in line:
            found.append(line)
    return found


async def gone(text: str) -> None:
    """Wait until no such program runs."""
    with anyio.fail_after(20):
        while await anyio.to_thread.run_sync(running, text):
            await anyio.sleep(0.02)


@pytest.mark.parametrize("direction", ["in", "out"])
async def test_nothing_runs_on_after_a_cancellation(direction: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "hole").open("wb") as file:
        file.truncate(8 << 30)
    seen = []

    async with CommandBackend(["sh", "-c"]) as backend:
        with anyio.CancelScope() as scope:

            def stop(step: FolderProgress) -> None:
                seen.extend(running(str(tmp_path)))
                if seen:
                    scope.cancel()

            if direction == "in":
                await put_folder(backend, str(source), str(tmp_path / "far"), on_progress=stop)
            else:
                await take_folder(backend, str(source), str(tmp_path / "far"), on_progress=stop)
        assert scope.cancelled_caught
        assert seen, "the test has to see the program while it runs"
        await gone(str(tmp_path))
        if direction == "out":
            assert list(tmp_path.iterdir()) == [source]


async def test_a_listener_that_fails_ends_it(source: Path, tmp_path: Path) -> None:
    def fail(step: FolderProgress) -> None:
        raise ZeroDivisionError

    async with CommandBackend(["sh", "-c"]) as backend:
        with pytest.raises(ZeroDivisionError):
            await put_folder(backend, str(source), str(tmp_path / "far"), on_progress=fail)
        with pytest.raises(ZeroDivisionError):
            await take_folder(backend, str(source), str(tmp_path / "out"), on_progress=fail)
    assert not (tmp_path / "out").exists()


async def test_a_file_that_changes_there_while_it_is_read_is_named(tmp_path: Path) -> None:
    """GNU tar says so; what it sent then is not taken for the file."""
    folder = tmp_path / "far"
    folder.mkdir()
    with (folder / "log").open("wb") as file:
        file.truncate(64 << 20)

    async with CommandBackend(["sh", "-c"]) as backend:
        shortening = Shortens(backend, folder / "log")
        with pytest.raises(FileChanged, match="log"):
            await take_folder(shortening, str(folder), str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == [folder]


class Shortens(Cut):
    """A backend that shortens a file once the first of it has come."""

    def __init__(self, backend: Any, path: Path) -> None:
        super().__init__(backend, after=0)
        self._path = path

    async def open_program(self, argv: Sequence[str]) -> Any:
        return Shortening(await self._backend.open_program(argv), self._path)


class Shortening:
    def __init__(self, channel: Any, path: Path) -> None:
        self._channel = channel
        self._path = path
        self._seen = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def receive(self) -> bytes:
        data: bytes = await self._channel.receive()
        self._seen += len(data)
        # The pipe holds 1 MiB at most, so the tar is far from the end of the file.
        if self._seen > 2 << 20:
            os.truncate(self._path, 0)
        return data
