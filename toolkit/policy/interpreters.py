"""Interpreters of languages that are not looked into: a file is a program, a text undecided."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.policy.inner import Found, Undecided, sourced
from toolkit.policy.options import read_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.policy.words import Word

__all__ = ["AWKS", "CODE", "awk", "interpreter"]

#: The names of interpreters, with or without a version.
CODE = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|tclsh|Rscript)[\d.]*")
_CODE_OPTIONS = {"python": "c", "pypy": "c", "php": "rBRE", "perl": "eE", "node": "ep"}
#: Programs that are an awk.
AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})


def awk(words: Sequence[Word]) -> list[Found]:
    """Return what an awk may run."""
    options = read_options(words, "Fvfile", permute=False)
    if options.has("ilE", "include", "load", "exec"):
        return [Undecided("awk loads more code")]
    programs = options.values("e", "source")
    if not programs and not options.has("f", "file"):
        programs = options.operands[:1]
    for program in programs:
        if program.text is None:
            return [Undecided("the program of awk is known only when it runs")]
        if re.search(r"system|getline|[|>@]", program.text):
            return [Undecided("the program of awk may run commands or write files")]
    return []


def _is_module(words: Sequence[Word]) -> bool:
    """Whether Python is told to run a module, behind which its own options end."""
    for word in words:
        found = re.match(r"-[A-Za-z]*?([cmWX])", word.text or "")
        if found is not None and found[1] in "cm":
            return found[1] == "m"
    return False


def interpreter(name: str, words: Sequence[Word]) -> list[Found]:
    """Return what an interpreter, named without its version, runs besides a script."""
    if name in ("python", "pypy") and _is_module(words):
        return []
    options = read_options(words, "mWXIM", permute=False)
    letters = _CODE_OPTIONS.get(name, "e")
    if options.has(letters, "eval", "print", "run"):
        return [Undecided(f"{name} code on a command line is not understood")]
    if options.has("mhVv", "version", "help"):
        return []
    if not options.operands or options.operands[0].text == "-":
        return [Undecided(f"{name} runs what it reads from its input")]
    return sourced(options.operands[:1])
