"""What git does to files, and how it is made to run other programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.policy.options import read_options
from toolkit.policy.path_use import HERE, UNCLEAR, Found, PathUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.policy.words import Word

__all__ = ["git_uses"]

_GIT_RUNS = re.compile(
    r"(?i)alias|pager|editor|hook|command|textconv|external|filter|helper|program|monitor|askpass|="
)
_GIT_VALUES = ("git-dir", "work-tree", "namespace", "exec-path", "config-env", "super-prefix")


def git_uses(words: Sequence[Word]) -> Found:
    """Tell what git does with these arguments; as `effects.path_uses`."""
    options = read_options(words, "Cc", _GIT_VALUES, permute=False)
    if options.values("c") or options.has("", "exec-path", "config-env"):
        yield "a setting on git's command line can run any program"
    if not options.operands:
        return
    command, *rest = options.operands
    if command.text is None:
        yield UNCLEAR
    runs = {"filter-branch", "difftool", "mergetool"}
    if command.text in runs or (command.text == "bisect" and [w for w in rest if w.text == "run"]):
        yield f"git {command.text} runs other programs"
    letters = {"clean": "e", "rebase": "x", "archive": "o", "format-patch": "o"}
    given = read_options(rest, letters.get(command.text or "", ""), ("output", "exec"))
    if command.text == "submodule" and any(word.text == "foreach" for word in rest):
        yield "git submodule foreach runs other programs"
    if command.text == "rebase" and given.has("x", "exec"):
        yield "git rebase --exec runs other programs"
    if command.text == "clean" and not read_options(rest, "e").has("n", "dry-run"):
        places = options.values("C", "work-tree") or [HERE]
        yield from (PathUse("delete", place, tree=True) for place in places)
    if command.text == "grep" and given.has("O", "open-files-in-pager"):
        yield "git grep -O runs another program"
    if given.has("", "ext-diff", "textconv"):
        yield "it runs the programs that the repository names"
    if command.text == "config" and any(_GIT_RUNS.search(w.text or "=") for w in given.operands):
        yield "this setting can have git run any program"
    written = given.values("o", "output")
    if command.text == "worktree" and [w.text for w in given.operands[:1]] == ["add"]:
        written += given.operands[1:2]
    for word in written:
        yield PathUse("write", word)
