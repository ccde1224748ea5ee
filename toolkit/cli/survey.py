"""What a target says of itself to a script that looks around: one trip, nothing of it trusted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, get_args

import anyio

if TYPE_CHECKING:
    from operations import BashOperations

__all__ = ["Kept", "Survey", "survey"]

_TIMEOUT_S = 30.0
_MOST_BYTES = 64 << 10
_MOST_CHARS = 400
_MOST_FOLDERS = 8
_VERSION = re.compile(r"\d+(\.\d+)+")
_NUMBER = re.compile(r"[0-9]{1,18}")

CwdState = Literal["writable", "read-only", "closed", "file", "missing"]
_CWD_STATES: tuple[CwdState, ...] = get_args(CwdState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Whole outputs of commands that lie on the target for whoever comes later.

    Attributes:
        folders: Where, at most 8 of them.
        files: How many there are.
        bytes: How large they are together.
        removed: How many of them have just been removed.
    """

    folders: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the script has found; None is "not told", and all text is still as it came.

    Attributes:
        whole: False when the answer broke off, or made no sense.
        uid: Number of the user that commands run as.
        user: That user's name, if it has one.
        system: The kernel's name, as "Linux".
        kernel: The kernel's release.
        machine: The kind of processor.
        sh: Path of what `sh` really is.
        versions: Of "bash", "rg", "git" and "tar", where they are; "" for an unknown one.
        python: Version of the engine's Python, or of the one that is found there.
        python_path: Where that is.
        ctypes: Whether it can call C functions, which a subreaper takes.
        openat2: Whether the kernel lets it open files confined to a folder.
        cwd: What the folder that tools work in is.
        temp: The folder for temporary files.
        temp_writable: Whether files can be made there.
        temp_free: Bytes that are free there.
        kept: Outputs that were kept.
    """

    whole: bool = False
    uid: int | None = None
    user: str | None = None
    system: str | None = None
    kernel: str | None = None
    machine: str | None = None
    sh: str | None = None
    versions: dict[str, str]
    python: str | None = None
    python_path: str | None = None
    ctypes: bool | None = None
    openat2: bool | None = None
    cwd: CwdState | None = None
    temp: str | None = None
    temp_writable: bool | None = None
    temp_free: int | None = None
    kept: Kept


async def survey(backend: BashOperations, cwd: str, *, remove_kept: bool) -> Survey:
    """Run the script on a target and return what it says.

    Args:
        backend: The target.
        cwd: The absolute folder that tools work in.
        remove_kept: Also remove the kept outputs of this user, except those that a living engine
            holds.

    Raises:
        OperationError: It could not be run.
    """
    told = bytearray()
    enough = anyio.Event()

    def take(data: bytes) -> None:
        told.extend(data[: _MOST_BYTES - len(told)])
        if len(told) >= _MOST_BYTES:
            enough.set()

    await backend.exec(
        (files("toolkit.cli") / "survey.sh").read_text(encoding="utf-8"),
        cwd="/",
        on_data=take,
        timeout_s=_TIMEOUT_S,
        env={"CHECK_CWD": cwd, "CHECK_REMOVE": "1" if remove_kept else ""},
        stop=enough,
    )
    return _parse(bytes(told))


def _parse(told: bytes) -> Survey:
    """Take an answer apart; what is not as the script would have said it counts as not told."""
    folders: list[str] = []
    said: dict[str, str] = {}
    for field in told.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        name, equals, value = field.partition("=")
        if not (equals and value) or len(value) > _MOST_CHARS:
            continue
        if name == "kept_in":
            folders.append(value)
        else:
            said.setdefault(name, value)

    def number(name: str) -> int | None:
        value = said.get(name, "")
        return int(value) if _NUMBER.fullmatch(value) else None

    def flag(name: str) -> bool | None:
        return {"0": False, "1": True}.get(said.get(name, ""))

    def version(name: str) -> str:
        found = _VERSION.search(said[name])
        return found[0] if found else ""

    kept, left = number("kept_files") or 0, number("left_files")
    return Survey(
        whole="end" in said,
        uid=number("uid"),
        # `id` tells the number again where there is no name.
        user=said.get("user") if said.get("user") != said.get("uid") else None,
        system=said.get("system"),
        kernel=said.get("kernel"),
        machine=said.get("machine"),
        sh=said.get("sh"),
        versions={name: version(name) for name in ("bash", "rg", "git", "tar") if name in said},
        python=version("python") or None if "python" in said else None,
        python_path=said.get("python_path"),
        ctypes=flag("ctypes"),
        openat2=flag("openat2"),
        cwd=next((state for state in _CWD_STATES if state == said.get("cwd")), None),
        temp=said.get("temp"),
        temp_writable=flag("temp_writable"),
        temp_free=_times(number("temp_free"), 1024),
        kept=Kept(
            folders=tuple(folders[:_MOST_FOLDERS]),
            files=kept if left is None else left,
            bytes=number("kept_bytes" if left is None else "left_bytes") or 0,
            removed=0 if left is None else max(0, kept - left),
        ),
    )


def _times(count: int | None, unit: int) -> int | None:
    return None if count is None else count * unit
