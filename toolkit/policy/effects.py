"""What well-known programs do to files, as their arguments tell it.

A table of the usual, not of everything: any program may write anywhere. What is listed here is
what is typed by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.policy.git import git_uses
from toolkit.policy.options import read_options
from toolkit.policy.path_use import GLOBBED, HERE, UNCLEAR, Access, Found, PathUse
from toolkit.policy.words import Word, literal

__all__ = ["KNOWN_PROGRAMS", "path_uses"]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A program whose operands are the paths that it changes."""

    access: Access
    short: str = ""
    long: tuple[str, ...] = ()
    skip: int = 0
    tree: str = ""
    modes: bool = False

    def uses(self, words: Sequence[Word]) -> Found:
        options = read_options(words, self.short, self.long)
        if options.unclear and self.tree:
            yield UNCLEAR
        skip = self.skip
        if options.has("rwxXstugo" if self.modes else "", "reference"):
            skip = 0  # `chmod -w a`: the mode looks like an option
        tree = bool(self.tree) and (options.globbed or options.has(self.tree, "recursive"))
        for word in options.operands[skip:]:
            yield PathUse(self.access, word, tree)


def _copy(words: Sequence[Word], *, moves: bool = False) -> Found:
    options = read_options(words, "tSgmo", ("target-directory", "suffix", "mode", "owner", "group"))
    if options.unclear:
        yield UNCLEAR
    into = options.values("t", "target-directory")
    sources = options.operands if into else options.operands[:-1]
    for word in into or options.operands[-1:] if len(options.operands) > 1 or into else [HERE]:
        yield PathUse("write", word, tree=False)
    if moves:
        for word in sources:
            yield PathUse("delete", word, tree=True)


def _move(words: Sequence[Word]) -> Found:
    yield from _copy(words, moves=True)


def _rsync(words: Sequence[Word]) -> Found:
    options = read_options(words, "eBfMT", ("rsh", "filter", "exclude", "include", "files-from"))
    if options.has("e", "rsh", "rsync-path"):
        yield "it runs another program"
    if options.unclear or options.globbed:
        yield GLOBBED if options.globbed else UNCLEAR
    removes = any(name.startswith("del") for name, _ in options.long)
    for word in options.operands[-1:]:
        yield PathUse("delete" if removes else "write", word, tree=removes)


def _dd(words: Sequence[Word]) -> Found:
    for word in words:
        known = word.prefix if word.text is None else word.text
        if known.startswith("of="):
            yield PathUse("write", word.rest(3))
        elif word.text is None and "=" not in known:
            yield UNCLEAR


_SED_COMMANDS = re.compile(r"(?:^|[;{}\n$/0-9])\s*[ewW](?:\s|$)")
_SED_FLAGS = re.compile(r"s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1(\w*)")
_MOST_SED_CHARS = 2000


def _may_write(script: str) -> bool:
    if len(script) > _MOST_SED_CHARS or _SED_COMMANDS.search(script):
        return True
    return any(set(found[2]) & {"e", "w"} for found in _SED_FLAGS.finditer(script))


def _sed(words: Sequence[Word]) -> Found:
    options = read_options(words, "efl", ("expression", "file", "line-length"))
    if options.unclear:
        yield UNCLEAR
    scripted = options.has("ef", "expression", "file")
    scripts = options.values("e", "expression") if scripted else options.operands[:1]
    for script in scripts:
        if script.text is None or _may_write(script.text):
            yield "its script may run commands or write files"
    if options.has("i", "in-place"):
        for word in options.operands if scripted else options.operands[1:]:
            yield PathUse("write", word)


def _sort(words: Sequence[Word]) -> Found:
    options = read_options(words, "koStT", ("key", "output", "buffer-size", "temporary-directory"))
    if options.has("", "compress-program"):
        yield "it runs another program (--compress-program)"
    if options.unclear:
        yield UNCLEAR
    for word in options.values("o", "output"):
        yield PathUse("write", word)


_FIND_WRITES = ("-fprint", "-fprint0", "-fprintf", "-fls")


_FIND_TESTS = (
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-regex",
    "-iregex",
    "-empty",
    "-newer",
    "-mtime",
)


def _inside(folder: Word) -> Word:
    if folder.text is None:
        return folder
    return replace(folder, text=f"{folder.text.rstrip('/')}/*", glob=True)


def _find(words: Sequence[Word]) -> Found:
    while words and re.fullmatch(r"-[HLP]|-O\d", words[0].text or ""):
        words = words[1:]
    starts: list[Word] = []
    deletes = False
    for number, word in enumerate(words):
        text = word.text
        if word.may_be_option or word.finds_options:
            yield GLOBBED if word.glob else UNCLEAR
        if text is not None and text.startswith(("-", "(", "!")):
            deletes |= text == "-delete"
            if text in _FIND_WRITES and number + 1 < len(words):
                yield PathUse("write", words[number + 1])
        elif number == len(starts):
            starts.append(word)
    some = any(word.text in _FIND_TESTS for word in words)
    for start in (starts or [HERE]) if deletes else ():
        # Of what it looks through, it deletes only some.
        yield PathUse("delete", _inside(start) if some else start, tree=True)


def _tar(words: Sequence[Word]) -> Found:
    if words and words[0].text and re.fullmatch(r"[A-Za-z]+", words[0].text):
        words = [literal(f"-{words[0].text}"), *words[1:]]  # `tar xf a.tar`
    long = ("file", "directory", "exclude", "transform", "strip-components", "files-from")
    options = read_options(words, "fCbTXgIHVKNFL", long)
    runs = ("to-command", "checkpoint-action", "use-compress-program", "info-script", "rsh-command")
    if options.has("IF", *runs):
        yield "it runs another program"
    if options.has("P", "absolute-names"):
        yield "-P writes wherever the archive says"
    if options.unclear or options.globbed:
        yield GLOBBED if options.globbed else UNCLEAR
    if options.has("x", "extract", "get"):
        for word in options.values("C", "directory") or [HERE]:
            yield PathUse("write", word)
    if options.has("cruA", "create", "append", "update"):
        for word in options.values("f", "file"):
            if word.text != "-":
                yield PathUse("write", word)


def _searcher(words: Sequence[Word]) -> Found:
    options = read_options(words, "efgtTABCmj")
    if options.has("", "pre", "hostname-bin"):
        yield "it runs another program (--pre)"
    if options.unclear and any(word.text is None for word in words[:1]):
        yield UNCLEAR


def _unzip(words: Sequence[Word]) -> Found:
    options = read_options(words, "dPx")
    if not options.has("lvtzp"):
        for word in options.values("d") or [HERE]:
            yield PathUse("write", word)


def _date(words: Sequence[Word]) -> Found:
    if read_options(words, "dfrs", ("date", "file", "reference", "set")).has("s", "set"):
        yield "it sets the clock"


def _output_option(short: str, *long: str) -> Callable[[Sequence[Word]], Found]:
    def uses(words: Sequence[Word]) -> Found:
        for word in read_options(words, short, long).values(short, *long):
            yield PathUse("write", word)

    return uses


def _uniq(words: Sequence[Word]) -> Found:
    for word in read_options(words, "fsw").operands[1:2]:
        yield PathUse("write", word)


_TABLE: dict[str, Callable[[Sequence[Word]], Found]] = {
    "chgrp": _Plain("write", skip=1, tree="R").uses,
    "chmod": _Plain("write", skip=1, tree="R", modes=True).uses,
    "chown": _Plain("write", skip=1, tree="R").uses,
    "cp": _copy,
    "curl": _output_option("o", "output", "output-dir"),
    "date": _date,
    "dd": _dd,
    "find": _find,
    "git": git_uses,
    "install": _copy,
    "ln": _copy,
    "mkdir": _Plain("write", "m", ("mode",)).uses,
    "mkfifo": _Plain("write", "m", ("mode",)).uses,
    "mv": _move,
    "rg": _searcher,
    "rm": _Plain("delete", tree="rR").uses,
    "rmdir": _Plain("delete").uses,
    "rsync": _rsync,
    "sed": _sed,
    "setfacl": _Plain("write", "mMxX", skip=0, tree="R").uses,
    "shred": _Plain("delete", "ns", ("iterations", "size", "random-source")).uses,
    "sort": _sort,
    "tar": _tar,
    "tee": _Plain("write").uses,
    "time": _output_option("o", "output"),
    "touch": _Plain("write", "drt", ("date", "reference", "time")).uses,
    "tree": _output_option("o"),
    "truncate": _Plain("write", "sr", ("size", "reference")).uses,
    "uniq": _uniq,
    "unlink": _Plain("delete").uses,
    "unzip": _unzip,
    "wget": _output_option("OPo", "output-document", "directory-prefix", "output-file"),
}


def path_uses(name: str, words: Sequence[Word]) -> Found:
    """Tell what the program `name` does to files with these arguments.

    Yields:
        Paths that it changes; a text for each reason why they are not all known.
    """
    uses = _TABLE.get(name)
    if uses is not None:
        yield from uses(words)


#: The programs of which something is known here.
KNOWN_PROGRAMS = frozenset(_TABLE)
