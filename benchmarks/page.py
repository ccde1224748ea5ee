"""What a full run leaves in the docs: a table for each part, and a plot of all ratios."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness import Figure

__all__ = ["PARTS", "plot", "with_table", "write"]

#: The parts of the page, and whose rows stand in each.
PARTS = {
    "here": ("pipeline", "files", "search", "shell", "start"),
    "docker": ("docker",),
    "ssh": ("ssh",),
}
HEAD = "| what | ours | reference | ratio | goal | |\n|---|---|---|---|---|---|"
_PAGE, _PLOT = "measured.md", "measured-{part}.svg"

_ROW, _TOP, _NAMES, _BARS, _REST = 22, 34, 330, 400, 130
_GREEN, _RED, _GREY = "#2e7d32", "#c62828", "#9e9e9e"


def write(
    docs: Path, part: str, title: str, figures: Sequence[Figure], line: Callable[[Figure], str]
) -> None:
    """Put a part's table into the page, and its plot beside it.

    Args:
        docs: The folder of the pages.
        part: One of PARTS.
        title: When, on what and how busy a machine.
        figures: All its rows.
        line: Gives a row's line of the table.
    """
    missed = sum(not figure.met for figure in figures)
    told = f"{title}; {len(figures) - missed} of {len(figures)} goals met"
    table = "\n".join([f"{told}:", "", HEAD, *map(line, figures)])
    page = docs / _PAGE
    page.write_text(with_table(page.read_text(encoding="utf-8"), part, table), encoding="utf-8")
    (docs / _PLOT.format(part=part)).write_text(plot(figures, told), encoding="utf-8")


def with_table(page: str, part: str, table: str) -> str:
    """Return a page with a part's table in place of the one between its marks.

    Raises:
        ValueError: The page has no such marks.
    """
    marked = re.compile(rf"(<!-- bench: {part} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"the page has no place for {part!r}, as <!-- bench: {part} -->")
    return marked.sub(lambda marks: f"{marks[1]}{table}{marks[2]}", page)


def plot(figures: Sequence[Figure], title: str) -> str:
    """Return a drawing of what ours takes of the reference, and of each goal; a log scale."""
    rows = [figure for figure in figures if figure.reference]
    ratios = [ratio for row in rows for ratio in (row.ratio, _goal(row), 1.0)]
    low = math.floor(math.log10(min(ratios, default=0.1)))
    high = max(math.ceil(math.log10(max(ratios, default=10.0))), low + 1)

    def x(ratio: float) -> float:
        return _NAMES + _BARS * (math.log10(ratio) - low) / (high - low)

    width, height = _NAMES + _BARS + _REST, _TOP + _ROW * len(rows) + 30
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="20" font-weight="bold">{html.escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        drawn.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 6}" y2="{height - 22}" '
            f'stroke="{_GREY}" stroke-width="{1.5 if power == 0 else 0.5}"/>'
            f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle">{_times(10.0**power)}</text>'
        )
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number
        start, end = sorted((x(1.0), x(row.ratio)))
        name = html.escape(f"{row.name} / {row.against}")
        drawn.append(
            f'<text x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{_cut(name)}</text>'
            f'<rect x="{start:.1f}" y="{y + 3}" width="{max(end - start, 1):.1f}" height="13" '
            f'fill="{_GREEN if row.met else _RED}"/>'
            f'<path d="M{x(_goal(row)):.1f} {y + 1}v17" stroke="black" stroke-width="2"/>'
            f'<text x="{_NAMES + _BARS + 8}" y="{y + 13}">{_times(row.ratio)}</text>'
        )
    return "\n".join([*drawn, "</svg>", ""])


def _goal(row: Figure) -> float:
    return row.goal + row.allowance_s / (row.reference or 1.0)


def _times(ratio: float) -> str:
    return f"1/{1 / ratio:.3g}" if ratio < 1 else f"{ratio:.3g}x"


def _cut(name: str) -> str:
    return name if len(name) <= 56 else f"{name[:53]}..."
