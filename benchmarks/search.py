"""grep and find against ripgrep's own process."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.harness import Figure, compare, program
from benchmarks.place import Place, open_place

FILES = 5000
RG = shutil.which("rg") or "rg"


async def rows(*, quick: bool) -> AsyncIterator[Figure]:
    rounds = 7 if quick else 31
    async with open_place() as place:
        fill(place.folder)
        yield await _grep(place, "grep a literal in 5,000 files, by rg", rounds, goal=1.3)
        yield await compare(
            "find **/*.txt in 5,000 files, sorted",
            lambda: place.call("find", pattern="**/*.txt", limit=FILES),
            program(RG, "--files", "--glob", "**/*.txt", ".", cwd=place.folder),
            against="rg --files",
            goal=2,
            rounds=rounds,
        )
    async with open_place(settings={"ripgrep": False}) as place:
        fill(place.folder)
        yield await _grep(place, "grep a literal in 5,000 files, own search", rounds, goal=3)


async def _grep(place: Place, name: str, rounds: int, *, goal: float) -> Figure:
    return await compare(
        name,
        lambda: place.call("grep", pattern="needle_here", literal=True),
        program(RG, "-n", "-F", "needle_here", ".", cwd=place.folder),
        against="rg",
        goal=goal,
        rounds=rounds,
    )


def fill(at: Path) -> None:
    """Write FILES small files below a folder, one of a hundred with what is searched for."""
    text = "".join(f"line {number} of some ordinary text\n" for number in range(60))
    for number in range(FILES):
        folder = at / f"d{number % 50:02d}" / f"e{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        found = "needle_here\n" if number % 100 == 0 else ""
        (folder / f"f{number:04d}.txt").write_text(text + found + text)
