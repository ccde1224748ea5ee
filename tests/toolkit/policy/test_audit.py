"""The audit log: no line is changed, moved or taken out unnoticed; a cut tail needs the head."""

from __future__ import annotations

import json
from types import SimpleNamespace

import anyio
import pytest

from toolkit.policy import AuditError, AuditLog, verify
from toolkit.policy.audit import GENESIS


def effect(number, details=None):
    return SimpleNamespace(
        call=SimpleNamespace(id=str(number)),
        tool=SimpleNamespace(name="t"),
        result=SimpleNamespace(is_error=False, error_kind=None, details=details),
    )


def write(path, count, details=None, **options):
    async def main():
        with AuditLog(path, **options) as log:
            for number in range(count):
                await log.effect(effect(number, details))
            return log.head

    return anyio.run(main)


def test_a_log_holds_and_is_continued(tmp_path):
    """Its head is found again as it grows."""
    path = tmp_path / "log"
    first = write(path, 3)
    last = write(path, 2)
    found = verify(path, first)
    assert (found.entries, found.head, found.problem) == (5, last, "")
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_log_holds(tmp_path):
    """Its head is that of nothing."""
    assert write(tmp_path / "log", 0) == GENESIS
    assert verify(tmp_path / "log", GENESIS).problem == ""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: [*lines[:1], lines[1].replace('"t"', '"u"'), *lines[2:]], 2),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        (lambda lines: [*lines[:2], *lines[3:]], 3),
        (lambda lines: [lines[0], lines[0], *lines[1:]], 2),
        (lambda lines: [*lines, "{}"], 5),
        (lambda lines: [*lines, "nonsense"], 5),
        (lambda lines: [*lines, '{"hash": NaN}'], 5),
        (lambda lines: [*lines, "[" * 5000], 5),
        (lambda lines: [lines[0].replace(":", ": ", 1), *lines[1:]], 1),
        (lambda lines: [lines[0].replace('{"number":1', '{"number":1,"number":1'), *lines[1:]], 1),
    ],
)
def test_what_was_done_to_a_line_shows(tmp_path, change, line):
    """With its number; the log is not continued."""
    path = tmp_path / "log"
    write(path, 4)
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    found = verify(path)
    assert found.problem.startswith(f"line {line} ")
    assert found.entries == line - 1
    with pytest.raises(AuditError, match="begin a new one"):
        AuditLog(path)


def test_a_changed_line_with_a_new_hash_breaks_the_next(tmp_path):
    """Unless all that follow are made anew, which the kept head shows."""
    path, other = tmp_path / "log", tmp_path / "other"
    head = write(path, 3)
    write(other, 3, details={"x": 1})
    lines, others = path.read_text().splitlines(), other.read_text().splitlines()
    path.write_text("\n".join([others[0], *lines[1:]]) + "\n")
    assert verify(path).problem.startswith("line 2 ")
    assert verify(other).problem == ""
    assert "no line has the hash" in verify(other, head).problem


def test_a_cut_tail_shows_by_the_head_alone(tmp_path):
    """As the documents say."""
    path = tmp_path / "log"
    head = write(path, 3)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    assert verify(path).problem == ""
    assert "lines were cut off" in verify(path, head).problem


def test_half_a_line_is_a_problem(tmp_path):
    """Left by a machine that lost its power."""
    path = tmp_path / "log"
    write(path, 2)
    path.write_text(path.read_text()[:-10])
    assert verify(path).problem == "line 2 is not whole"


def test_one_run_at_a_time_holds_a_log(tmp_path):
    """Two would break each other's chain."""
    with (
        AuditLog(tmp_path / "log"),
        pytest.raises(AuditError, match="in use by another run"),
    ):
        AuditLog(tmp_path / "log")


def test_a_link_in_place_of_the_log_is_refused(tmp_path):
    """It may lead anywhere."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="link"):
        AuditLog(tmp_path / "link")


def test_what_is_large_is_cut_and_what_is_secret_redacted(tmp_path):
    """A long text stays as its beginning and its hash."""
    path = tmp_path / "log"
    details = {"a": "s3cret-value", "b": "x" * 100_000, "c": ["y" * 1500] * 500, "d": "\ud800"}
    write(path, 1, details=details, redact=lambda text: text.replace("s3cret-value", "***"))
    (line,) = path.read_text().splitlines()
    assert len(line) < 64 * 1024
    assert "s3cret" not in line
    assert "SHA-256" in json.loads(line)["details"]
    assert verify(path).problem == ""


def test_lines_of_many_calls_at_once_are_in_a_chain(tmp_path):
    """Whatever the order of their ends."""

    async def main():
        with AuditLog(tmp_path / "log") as log:
            async with anyio.create_task_group() as tasks:
                for number in range(50):
                    tasks.start_soon(log.effect, effect(number))

    anyio.run(main)
    assert verify(tmp_path / "log").entries == 50
