"""read, write, edit and ls against the barest code that does the same work."""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread

from benchmarks.harness import Figure, compare, single
from benchmarks.memory import grown_by
from benchmarks.place import Place, open_place

WINDOW = (500_000, 101)


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    rounds = 30 if quick else 150
    async with open_place() as place:
        yield await _read_small(place, rounds)
        yield await _read_window(place, 3 if quick else 11)
        yield await single(
            "resident memory grown by that read, in a fresh process",
            lambda: grown_by("read", path=str(place.folder / "big.txt"), offset=500_000, limit=101),
            goal=20,
            unit="MB",
        )
        yield await _write_small(place, rounds)
        yield await _edit(place, "edit one line of a 1 KB file", 16, rounds, goal=3)
        yield await _edit(place, "edit one line of a 1 MB file", 16_000, rounds // 3, goal=2)
        yield await _list(place, rounds)


async def _read_small(place: Place, rounds: int) -> Figure:
    path = place.folder / "small.txt"
    path.write_bytes(b"x" * 63 + b"\n" + (b"y" * 59 + b"\n") * 16)
    return await compare(
        "read 1 KB through the tool",
        lambda: place.call("read", path="small.txt"),
        lambda: anyio.to_thread.run_sync(path.read_bytes),
        against="bare read in a thread",
        goal=3,
        rounds=rounds,
    )


async def _read_window(place: Place, rounds: int) -> Figure:
    path = place.folder / "big.txt"
    with path.open("wb") as file:
        for first in range(0, 1_000_000, 10_000):
            file.write(b"".join(b"line %044d\n" % n for n in range(first, first + 10_000)))

    async def scan() -> None:
        lines = 0
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(1 << 20):
                lines += chunk.count(b"\n")

    return await compare(
        "lines 500,000-500,100 of a 50 MB file",
        lambda: place.call("read", path="big.txt", offset=WINDOW[0], limit=WINDOW[1]),
        scan,
        against="bare chunk scan",
        goal=2,
        rounds=rounds,
    )


async def _write_small(place: Place, rounds: int) -> Figure:
    content = "x" * 1023 + "\n"

    async def bare() -> None:
        _replace(place.folder / "bare.txt", content.encode())

    return await compare(
        "write 1 KB",
        lambda: place.call("write", path="written.txt", content=content),
        bare,
        against="bare temporary file and rename",
        goal=3,
        rounds=rounds,
    )


async def _edit(place: Place, name: str, lines: int, rounds: int, *, goal: float) -> Figure:
    text = "".join(f"{number:06d} {'x' * 56}\n" for number in range(lines))
    middle = f"{lines // 2:06d} "
    ours_path, bare_path = place.folder / "ours.txt", place.folder / "bare.txt"
    ours_path.write_text(text)
    bare_path.write_text(text)
    flips = {"ours": 0, "bare": 0}

    def change(who: str) -> tuple[str, str]:
        flips[who] += 1
        old, new = ("x", "y") if flips[who] % 2 else ("y", "x")
        return middle + old, middle + new

    async def ours() -> None:
        old, new = change("ours")
        await place.call("edit", path="ours.txt", edits=[{"old_text": old, "new_text": new}])

    async def bare() -> None:
        old, new = change("bare")
        before = bare_path.read_bytes().decode()
        after = before.replace(old, new)
        _replace(bare_path, after.encode())
        at = before.index(old)
        window = slice(max(0, at - 300), at + 300)
        list(
            difflib.unified_diff(
                before[window].splitlines(), after[window].splitlines(), lineterm=""
            )
        )

    return await compare(
        name,
        ours,
        bare,
        against="bare read, replace, rename, difflib on the window",
        goal=goal,
        rounds=rounds,
    )


async def _list(place: Place, rounds: int) -> Figure:
    folder = place.folder / "many"
    folder.mkdir()
    for number in range(1000):
        (folder / f"entry-{number:04d}.txt").touch()

    def scan() -> list[tuple[str, int]]:
        with os.scandir(folder) as entries:
            return sorted((entry.name, os.lstat(entry.path).st_mode) for entry in entries)

    return await compare(
        "ls of 1,000 entries",
        lambda: place.call("ls", path="many", limit=1000),
        lambda: anyio.to_thread.run_sync(scan),
        against="os.scandir and lstat in a thread",
        goal=4,
        rounds=rounds,
    )


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(".bare-temporary")
    temporary.write_bytes(content)
    temporary.replace(path)
