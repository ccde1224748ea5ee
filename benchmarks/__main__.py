"""`python -m benchmarks`: run the rows and print the table; a full run goes into the docs."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from benchmarks import docker, files, page, pipeline, search, shell, ssh, start
from benchmarks.harness import Figure

DOCS = Path(__file__).parents[1] / "docs"
MODULES = {
    "pipeline": pipeline,
    "files": files,
    "search": search,
    "shell": shell,
    "start": start,
    "docker": docker,
    "ssh": ssh,
}


async def main(only: list[str], *, quick: bool) -> dict[str, list[Figure]]:
    """Print each row when it is measured; return them by module."""
    figures: dict[str, list[Figure]] = {}
    for name in only or list(MODULES):
        rows: AsyncIterator[Figure] = MODULES[name].rows(quick=quick)
        figures[name] = []
        async for figure in rows:
            print(line(figure), flush=True)
            figures[name].append(figure)
    return figures


def line(figure: Figure) -> str:
    """Return one line of the table."""
    against = (
        f"{amount(figure.reference, figure.unit)} {figure.against}" if figure.reference else ""
    )
    ratio = times(figure.ratio) if figure.reference else ""
    limit = times(figure.goal) if figure.reference else amount(figure.goal, figure.unit)
    if figure.allowance_s:
        limit += f" + {amount(figure.allowance_s, 's')}"
    mark = "met" if figure.met else "NOT MET"
    ours = amount(figure.ours, figure.unit)
    return f"| {figure.name} | {ours} | {against} | {ratio} | {limit} | {mark} |"


def times(ratio: float) -> str:
    """Write a ratio; a small one as how many times less."""
    return f"1/{1 / ratio:.3g}" if ratio < 0.2 else f"{ratio:.3g}x"


def amount(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:.1f} {unit}" if value >= 0.1 else f"{value:.2f} {unit}"
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def parts(figures: dict[str, list[Figure]]) -> dict[str, list[Figure]]:
    """Return the rows of each part of the page of which all were measured."""
    return {
        part: [figure for name in names for figure in figures[name]]
        for part, names in page.PARTS.items()
        if figures.keys() >= set(names)
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds: under a minute each; nothing is written"
    )
    parser.add_argument("--only", action="append", choices=list(MODULES), default=[])
    options = parser.parse_args()
    title = (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians, measured in turn"
    )
    print(f"{title}\n\n{page.HEAD}")
    measured = anyio.run(lambda: main(options.only, quick=options.quick))
    figures = [figure for rows in measured.values() for figure in rows]
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(figures) - len(missed)} of {len(figures)} goals met")
    if not options.quick:
        for part, rows in parts(measured).items():
            page.write(DOCS, part, title, rows, line)
            print(f"written: docs/measured.md and docs/measured-{part}.svg")
