"""`python -m benchmarks`: run the rows and print the table."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
from collections.abc import AsyncIterator

import anyio

from benchmarks import docker, files, pipeline, search, shell, ssh, start
from benchmarks.harness import Figure

MODULES = {
    "pipeline": pipeline,
    "files": files,
    "search": search,
    "shell": shell,
    "start": start,
    "docker": docker,
    "ssh": ssh,
}


async def main(only: list[str], *, quick: bool) -> list[Figure]:
    figures = []
    for name in only or list(MODULES):
        rows: AsyncIterator[Figure] = MODULES[name].rows(quick=quick)
        async for figure in rows:
            print(line(figure), flush=True)
            figures.append(figure)
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under a minute")
    parser.add_argument("--only", action="append", choices=list(MODULES), default=[])
    options = parser.parse_args()
    print(
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians, measured in turn\n"
    )
    print("| what | ours | reference | ratio | goal | |\n|---|---|---|---|---|---|")
    figures = anyio.run(lambda: main(options.only, quick=options.quick))
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(figures) - len(missed)} of {len(figures)} goals met")
