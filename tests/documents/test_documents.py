"""Every code block of the documents runs and shows what it says; no link in them leads nowhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"])
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
#: Two commands that the suite itself is part of, or that install things.
RUN_ELSEWHERE = "./scripts/"
#: What is shown as a block and is a file too, by the block's first line.
SHOWN_FILES = {
    text.splitlines()[0]: text
    for text in (path.read_text(encoding="utf-8") for path in ROOT.glob("examples/*.py"))
}


def blocks(language: str) -> list[object]:
    return [
        pytest.param(match[2], id=f"{name}:{text[: match.start()].count(chr(10)) + 1}")
        for name, text in TEXTS.items()
        for match in BLOCK.finditer(text)
        if match[1] == language
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_every_block_names_a_language_that_is_tested(name: str) -> None:
    for match in BLOCK.finditer(TEXTS[name]):
        assert match[1] in {"python", "console", "text"}, match[0][:80]


@pytest.mark.parametrize("name", TEXTS)
def test_every_link_leads_to_a_file_and_its_heading(name: str) -> None:
    for path, anchor in LINK.findall(BLOCK.sub("", TEXTS[name])):
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), path
        if anchor:
            headings = HEADING.findall(target.read_text(encoding="utf-8"))
            assert anchor in [anchor_of(heading) for heading in headings], f"{path}#{anchor}"


def anchor_of(heading: str) -> str:
    """Return the name that a heading can be linked by."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, found = set(), {ROOT / "README.md"}
    while found:
        page = found.pop()
        reached.add(page)
        for path, _ in LINK.findall(TEXTS[str(page.relative_to(ROOT))]):
            target = (page.parent / path).resolve()
            if target in PAGES and target not in reached:
                found.add(target)
    assert reached == set(PAGES)


@pytest.mark.parametrize("source", blocks("python"))
def test_python_blocks_run_and_print_their_comments(
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line `# prints: TEXT` promises that TEXT stands in the output."""
    if file := SHOWN_FILES.get(source.splitlines()[0]):
        assert source == file
        return
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "block", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for promised in re.findall(r"# prints: (.*)", source):
        assert promised in printed


@pytest.mark.parametrize("source", blocks("console"))
def test_console_blocks_run_and_print_what_follows(source: str, tmp_path: Path) -> None:
    """`$ command` lines run in one shell; each other line must be a line of the output."""
    lines = source.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    elsewhere = [line for line in commands if RUN_ELSEWHERE in line]
    if elsewhere:
        assert elsewhere == commands
        for line in lines:
            script = next(word for word in line.split() if word.startswith(RUN_ELSEWHERE))
            assert os.access(ROOT / script, os.X_OK), f"{script} cannot be run"
        return
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    for line in lines:
        if line and not line.startswith(("$ ", "#")):
            assert line in done.stdout, done.stdout + done.stderr
