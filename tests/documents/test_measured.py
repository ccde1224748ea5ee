"""What a run of the benchmarks leaves in the docs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.harness import Figure
from benchmarks.page import PARTS, plot, with_table, write

PAGE = Path(__file__).parents[2] / "docs" / "measured.md"
FIGURES = [
    Figure(name="read <1 KB>", ours=0.001, reference=0.1, against="ssh & co", goal=0.1),
    Figure(name="write", ours=0.3, reference=0.1, against="bare", goal=2.0, allowance_s=0.05),
    Figure(name="memory", ours=3.0, reference=None, against="", goal=2.0, unit="MB"),
]


def test_a_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "measured.md"
    page.write_text("# M\n\n<!-- bench: ssh -->\nold\n<!-- end -->\n\nafter\n")
    write(tmp_path, "ssh", "today", FIGURES, lambda figure: f"| {figure.name} |")
    told = page.read_text()
    assert "old" not in told
    assert "today; 1 of 3 goals met:" in told
    assert "| write |" in told
    assert told.endswith("<!-- end -->\n\nafter\n")
    with pytest.raises(ValueError, match="docker"):
        with_table(told, "docker", "table")


def test_the_page_has_a_place_for_every_part() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for part in PARTS:
        assert "table" in with_table(page, part, "table")


def test_the_plot_is_a_drawing_with_a_bar_for_each_ratio() -> None:
    root = ET.fromstring(plot(FIGURES, "a < b"))
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b" in texts
    assert "read <1 KB> / ssh & co" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 2
    assert ET.fromstring(plot([], "none")) is not None
