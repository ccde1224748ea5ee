"""What people see of calls and results: as in the snapshots, whatever the terminal is.

After a wanted change, REMOTEHANDS_WRITE_SNAPSHOTS=1 writes them anew; look at the difference.
"""

from __future__ import annotations

import io
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from toolkit import AgentToolResult, ImageContent, TextContent
from toolkit.rendering import call_view, result_view, terminal
from toolkit.rendering.diffs import marked_pair
from toolkit.rendering.plain import visible

SNAPSHOTS = Path(__file__).parent / "snapshots"

PYTHON = "def greet(name):\n    return f'hello {name}'\n\n\nprint(greet('you'))"
DIFF = """\
--- main.py
+++ main.py
@@ -1,4 +1,5 @@
 def greet(name):
-    return f'helo {name}'
+    return f'hello {name}'
 #
-print(greet('you'))
+print(greet('them'))
+print('a new line')
@@ -20,2 +21,1 @@
 last = 1
-\told = 2
"""


def result(text: str, details: dict[str, Any] | None = None, **more: Any) -> AgentToolResult:
    return AgentToolResult.text(text, details=details, **more)


READ = {"kind": "text", "language": "python", "start_line": 9, "shown_lines": 5}
SHOWN: dict[str, tuple[str, dict[str, Any], AgentToolResult]] = {
    "read": (
        "read",
        {"path": "src/main.py", "offset": 9, "limit": 5},
        result(f"{PYTHON}\n\n[Showing lines 9-13 of 40; continue with offset=14.]", READ),
    ),
    "read tabs": (
        "read",
        {"path": "Makefile"},
        result(
            "all:\n\tcc -o main main.c -lfoo\n\tls", {**READ, "start_line": 1, "shown_lines": 3}
        ),
    ),
    "read an image": (
        "read",
        {"path": "logo.png"},
        AgentToolResult(
            [
                TextContent(text="logo.png: image/png, 64x64, 3.0 KB"),
                ImageContent(data="A" * 4096, mime_type="image/png"),
            ],
            {"kind": "image"},
        ),
    ),
    "write": (
        "write",
        {"path": "a/b.py", "content": "x = 1\ny = 'two'\n"},
        result("Created a/b.py (2 lines, 15 bytes)."),
    ),
    "edit": (
        "edit",
        {"path": "main.py", "edits": [{}, {}]},
        result(
            "Edited main.py: 2 replacements (+3 -3 lines), the first in line 2.", {"diff": DIFF}
        ),
    ),
    "bash": (
        "bash",
        {"command": "make test | tail -n 3"},
        result("ok 1\nok 2\n\n(done)", {"ended": "exited", "exit_code": 0, "duration_ms": 1234.5}),
    ),
    "a failed command": (
        "bash",
        {"command": "ls nope", "timeout": 5},
        result(
            "ls: cannot access 'nope'\n\nCommand exited with code 2.",
            {"exit_code": 2, "duration_ms": 3.0},
            is_error=True,
        ),
    ),
    "grep": (
        "grep",
        {"pattern": "greet", "path": "src", "glob": "*.py", "ignore_case": True},
        result(
            "src/a.py-1- # Greets\nsrc/a.py:2: def greet():\n--\nsrc/b.py:30: greet()\n\n"
            "[Showing the first 2 matching lines; there are more.]"
        ),
    ),
    "find": ("find", {"pattern": "**/*.py"}, result("src/\nsrc/a.py")),
    "ls": ("ls", {}, result("src/\nlatest@ -> src\nREADME.md")),
    "an error": (
        "read",
        {"path": "mian.py"},
        result(
            "mian.py: no such file; the working folder has main.py, src/",
            is_error=True,
            error_kind="not_found",
        ),
    ),
    "another tool": ("deploy", {"to": "web1", "dry": True}, result("would deploy to web1")),
    "a hostile far end": (
        "bash",
        {"command": "echo \x1b]0;title\x07"},
        result("\x1b[2Jgone \u202etxt.exe\u2066 \x9b31m", {"duration_ms": 1.0}),
    ),
}


def render(width: int, *, color: bool = False, max_lines: int | None = None) -> str:
    """Return everything above as a terminal of a width shows it."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for title, (name, params, shown) in SHOWN.items():
        out.write(f"=== {title}\n")
        console.print(call_view(name, params))
        console.print(result_view(name, params, shown, max_lines=max_lines))
    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("wide.txt", {"width": 100}),
        ("narrow.txt", {"width": 32}),
        ("short.txt", {"width": 100, "max_lines": 3}),
        ("colors.txt", {"width": 100, "color": True}),
    ],
)
def test_it_looks_as_it_did(
    file: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORFGBG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    shown = render(**options).replace("\x1b", "\\e")
    if os.environ.get("REMOTEHANDS_WRITE_SNAPSHOTS"):
        (SNAPSHOTS / file).write_text(shown)
    assert shown == (SNAPSHOTS / file).read_text()


def test_a_light_terminal_gets_other_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORFGBG", "15;0")
    dark = render(100, color=True)
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert render(100, color=True) != dark


def test_nothing_is_coloured_for_those_who_want_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    name, params, shown = SHOWN["edit"]
    terminal(width=80).print(result_view(name, params, shown))
    assert "\x1b" not in capsys.readouterr().out


def test_the_words_that_differ_are_marked() -> None:
    old, new = marked_pair("    return f'helo {name}'", "    return f'hello {name}'")
    assert [old.plain[span.start : span.end] for span in old.spans] == ["helo"]
    assert [new.plain[span.start : span.end] for span in new.spans] == ["hello"]
    old, new = marked_pair("one thing", "{ return 7; }")
    assert not old.spans
    assert not new.spans


@given(st.text())
def test_what_is_shown_neither_acts_nor_hides(text: str) -> None:
    shown = visible(text)
    assert not [
        char
        for char in shown
        if char != "\u200d" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
    if text.isascii() and text.isprintable():
        assert shown == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([
    *("path", "command", "pattern", "edits", "content", "offset", "limit", "timeout", "glob"),
    *("diff", "kind", "shown_lines", "start_line", "language", "duration_ms", "exit_code"),
])  # fmt: skip


@given(
    name=st.sampled_from(["read", "write", "edit", "bash", "grep", "find", "ls", "other"]),
    params=st.dictionaries(NAMES, JSON),
    text=st.text(),
    details=st.none() | st.dictionaries(NAMES, JSON),
    is_error=st.booleans(),
    width=st.integers(1, 120),
    max_lines=st.none() | st.integers(1, 5),
)
def test_anything_can_be_shown(
    name: str,
    params: dict[str, Any],
    text: str,
    details: dict[str, Any] | None,
    is_error: bool,
    width: int,
    max_lines: int | None,
) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(call_view(name, params))
    shown = result(text, details, is_error=is_error)
    console.print(result_view(name, params, shown, max_lines=max_lines))
