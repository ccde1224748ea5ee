"""Programs that run other programs, and where in their arguments those stand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.policy.inner import Found, Inner, Source, Undecided, sourced
from toolkit.policy.interpreters import AWKS, CODE, awk, interpreter
from toolkit.policy.options import read_options
from toolkit.policy.variables import is_risky
from toolkit.policy.words import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PLAIN", "inner_commands", "runs_others"]


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A program that runs what stands behind its own options.

    Attributes:
        short: Letters of its options that take a value.
        long: Long options that take a value.
        skip: How many operands stand in front of the command.
        assigns: Whether NAME=VALUE may stand there too.
        sources: Letters of options whose value is a command's source.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    skip: int = 0
    assigns: bool = False
    sources: str = ""


#: Prefixes that change nothing about what runs; they count as no command of their own.
PLAIN: dict[str, _Prefix] = {
    "builtin": _Prefix(),
    "command": _Prefix(),
    "coproc": _Prefix(),
    "env": _Prefix("uC", ("unset", "chdir"), assigns=True, sources="S"),
    "exec": _Prefix("a"),
    "ionice": _Prefix("cnpPu", ("class", "classdata", "pid")),
    "nice": _Prefix("n", ("adjustment",)),
    "nohup": _Prefix(),
    "setsid": _Prefix(),
    "stdbuf": _Prefix("ioe", ("input", "output", "error")),
    "time": _Prefix("fo", ("format", "output")),
    "timeout": _Prefix("ks", ("kill-after", "signal"), skip=1),
}
#: Prefixes that do change something: both they and what they run are commands.
OTHERS: dict[str, _Prefix] = {
    "chroot": _Prefix("", ("userspec", "groups"), skip=1),
    "chrt": _Prefix("TPD", ("sched-runtime", "sched-period", "sched-deadline"), skip=1),
    "doas": _Prefix("uC", assigns=True),
    "flock": _Prefix("wE", ("timeout", "conflict-exit-code"), skip=1, sources="c"),
    "ltrace": _Prefix("aAeDFlnopsuxX"),
    "runuser": _Prefix("ugGs", ("user", "group", "supp-group", "shell"), sources="c"),
    "setpriv": _Prefix("", ("reuid", "regid", "groups", "inh-caps", "bounding-set")),
    "strace": _Prefix("abeIoOpPsSuEU"),
    "su": _Prefix("gGsw", ("group", "supp-group", "shell"), skip=99, sources="c"),
    "sudo": _Prefix(
        "CDghpRrTtUu",
        ("user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "close-from"),
        assigns=True,
    ),
    "taskset": _Prefix("", skip=1),
    "unshare": _Prefix("RwSG", ("root", "wd", "setuid", "setgid", "map-user", "map-group")),
    "watch": _Prefix("n", ("interval",)),
    "xargs": _Prefix(
        "IEdaLnPs",
        ("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "replace"),
    ),
}
_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "zsh"})
_RUNS_ANYTHING = {
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "emacs"), "an editor runs commands too"),
    **dict.fromkeys(("at", "batch", "crontab", "systemd-run"), "it has something run later"),
    **dict.fromkeys(("parallel", "rush"), "it puts commands together as it runs"),
    **dict.fromkeys(("gdb", "expect", "script", "screen", "tmux"), "it runs commands it is given"),
    **dict.fromkeys(("busybox", "toybox"), "it is many programs in one"),
    **dict.fromkeys(("fish", "csh", "tcsh", "pwsh"), "its language is not understood"),
    **dict.fromkeys(("alias", "bind", "fc"), "it changes what other words mean"),
}
_RUN_WHAT_IS_NAMED = ("bun", "bunx", "deno", "docker", "eval", "kubectl", "make", "npx", "pipx")
_RUNNERS = frozenset(
    {*PLAIN, *OTHERS, *_SHELLS, *AWKS, *_RUNS_ANYTHING, *_RUN_WHAT_IS_NAMED}
    | {"podman", "ssh", "trap", "uv", "uvx"}
)
_OPTION_RUNS = {"enable": "f", "hash": "p", "complete": "CF", "mapfile": "C", "readarray": "C"}
_NAME_VALUE = re.compile(r"[A-Za-z_]\w*=")


def inner_commands(name: str, words: Sequence[Word]) -> list[Found]:
    """Return what a program runs, beside itself.

    Args:
        name: The program.
        words: Its arguments.
    """
    prefix = PLAIN.get(name) or OTHERS.get(name)
    if prefix is not None:
        return _behind(name, prefix, words)
    if name in _SHELLS:
        return _shell(words)
    if name == "find":
        return _find(words)
    if name == "eval":
        return [_together(words, "eval")] if words else []
    if name == "trap":
        handler = read_options(words, permute=False).operands[:1]
        return [_together(handler, "trap")] if handler and handler[0].text != "-" else []
    if name in ("source", "."):
        return sourced(words[:1])
    if name in AWKS:
        return awk(words)
    if name in _RUNS_ANYTHING:
        return [Undecided(_RUNS_ANYTHING[name])]
    if name in _OPTION_RUNS and read_options(words).has(_OPTION_RUNS[name]):
        return [Undecided("it changes what other words mean")]
    if CODE.fullmatch(name):
        return interpreter(name.rstrip("0123456789."), words)
    return []


def _behind(name: str, prefix: _Prefix, words: Sequence[Word]) -> list[Found]:
    options = read_options(words, prefix.short + prefix.sources, prefix.long, permute=False)
    long = ("split-string",) if prefix.sources else ()
    found = [
        _source(source, f"{name} -{prefix.sources}")
        for source in options.values(prefix.sources, *long)
    ]
    if options.has("D" if name == "sudo" else "C" if name == "env" else "", "chdir"):
        found.append(Undecided(f"{name} changes the folder first"))
    if name == "time" and (options.long or any(letter != "p" for letter, _ in options.short)):
        found.append(Undecided("the shell's time and the program time differ in options"))
    if name == "coproc":
        found.append(Undecided("coproc is not understood"))
    if options.has("", "command", "session-command") and name in ("su", "runuser", "flock"):
        found.append(Undecided(f"the command of {name} stands in an option"))
    if name == "command" and options.has("vV"):
        return found
    operands = options.operands
    if prefix.assigns:
        while operands and _NAME_VALUE.match(operands[0].text or operands[0].prefix):
            if is_risky((operands[0].text or operands[0].prefix).partition("=")[0]):
                found.append(Undecided(f"it sets {operands[0].shown}"))
            operands = operands[1:]
    elif operands and name == "time" and "=" in (operands[0].text or "="):
        found.append(Undecided("whether time runs this or sets it is not clear"))
    operands = operands[prefix.skip :]
    if name == "flock" and [word.text for word in operands[:1]] == ["-c"]:
        found += [_source(word, "the command of flock") for word in operands[1:2]]
    elif operands and name == "watch":
        found.append(_together(operands, name))
    elif operands:
        # xargs hands on what it reads, wherever that goes.
        extra = (Word(None, "what xargs reads"),) if name == "xargs" else ()
        replaced = options.values("I", "replace") if name == "xargs" else []
        if replaced:
            mark = replaced[0].text or "{}"
            operands = [_without(word, mark) for word in operands]
        found.append(Inner((*operands, *(() if replaced else extra))))
    elif name == "xargs":
        return []  # it runs echo
    return found


def _without(word: Word, mark: str) -> Word:
    """Return a word in which `mark` will be replaced by something unknown."""
    if word.text is None or mark not in word.text:
        return word
    return Word(None, word.shown, prefix=word.text.partition(mark)[0])


def _shell(words: Sequence[Word]) -> list[Found]:
    if any((word.text or "").startswith("+") for word in words[:2]):
        return [Undecided("options with + are not understood")]
    long = ("rcfile", "init-file")
    options = read_options(words, "oO", long, permute=False)
    if options.has("", "help", "version"):
        return []
    if options.has("c"):
        if not options.operands:
            return []
        return [_source(options.operands[0], "the command of the shell")]
    if options.has("", *long) or options.has("i"):
        return [Undecided("an interactive shell reads files first")]
    if not options.operands or options.has("s"):
        return [Undecided("a shell runs what it reads from its input")]
    return sourced(options.operands[:1])


def _find(words: Sequence[Word]) -> list[Found]:
    found: list[Found] = []
    starts = [word for word in words if not (word.text or "-").startswith(("-", "(", "!"))][:1]
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        inner: list[Word] = []
        while at < len(words) and words[at].text != ";":
            if words[at].text == "+" and inner and inner[-1].text == "{}":
                break
            inner.append(words[at])
            at += 1
        # What is found is beneath the folder where the search starts.
        start = starts[0] if starts else Word(".", ".")
        found.append(
            Inner(tuple(start if each.text == "{}" else _without(each, "{}") for each in inner))
        )
    return found


def _source(word: Word, what: str) -> Found:
    if word.text is None:
        return Undecided(f"{what} is known only when it runs")
    return Source(word.text)


def _together(words: Sequence[Word], what: str) -> Found:
    if any(word.text is None or word.glob or word.home for word in words):
        return Undecided(f"what {what} runs is known only when it runs")
    return Source(" ".join(word.text or "" for word in words))


def runs_others(name: str) -> bool:
    """Whether a program runs what its arguments or files say, so that its name says little."""
    return name in _RUNNERS or CODE.fullmatch(name) is not None
