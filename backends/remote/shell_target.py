"""What a target without Python has: asked once, in one trip, when the first lane opens."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from backends.engine.shell import QUIET
from backends.remote.shell_marks import Garbage
from backends.remote.shell_quote import quoted
from operations import OperationUnsupported, TargetFacts

__all__ = ["Target", "target_of"]

#: Without these there is no way to do any work.
_NEEDED = ("dd", "head", "tail", "wc", "stat", "mv", "mkdir", "rm", "find", "readlink")

# As the engine does: the text comes on a descriptor, so that it is no argument. bash reads it into
# a variable; other shells cannot read to the end without a fork, so they source it.
_BASH = """unset -v REPLY; read -r -d "" <&9; exec 9<&-; eval -- "$REPLY\""""
_SOURCE = ". /proc/self/fd/9"
_EVALUATE = 'eval "$(cat <&9)"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the probe told.

    Attributes:
        facts: The facts that tools may know.
        settings: What the script of every lane is told, as shell text.
        command_prefix: Stands before a command's text.
        has_proc: Whether processes can be seen.
        has_digest: Whether a file's digest can be had there.
        has_tee: Whether output can be kept while it is sent.
        grep_sees_all: Whether its grep looks beyond a NUL byte.
        python: Path of a Python 3, or None.
        superuser: Whether permission checks say nothing.
    """

    facts: TargetFacts
    settings: str
    command_prefix: bytes
    has_proc: bool
    has_digest: bool
    has_tee: bool
    grep_sees_all: bool
    python: str | None
    superuser: bool


def target_of(answer: bytes, kept_cap: int) -> Target:
    """Return what a probe's answer tells.

    Args:
        answer: What the script's `probe` printed.
        kept_cap: Most bytes of one command's kept output.

    Raises:
        Garbage: It makes no sense.
        OperationUnsupported: The target lacks what nothing can be done without.
    """
    told = _told(answer)
    has = {key[4:]: value for key, value in told.items() if key.startswith("has ") and value}
    missing = [name for name in _NEEDED if name not in has]
    if missing or "take" not in told:
        lacks = ", ".join(missing) or "a dd or head that reads an exact number of bytes"
        raise OperationUnsupported("working without Python", f"the target lacks {lacks}")
    shell = "bash" if "bash" in has else "sh"
    source = _SOURCE if "fds" in told else _EVALUATE
    run = f"exec {has.get('setsid', '')} {has.get('bash', has.get('sh', 'sh'))}"
    if shell == "bash":
        run += f" --norc -c '{_BASH}' bash"
    else:
        run += f" -c '{source}' sh"
    settings = [
        f"take={quoted(told['take'].encode()).decode()}",
        f"find_prints={told.get('find_prints', '')}",
        f"mv_flag={told.get('mv_flag', '')}",
        f"grep_nul={told.get('grep_nul', '')}",
        f"nap={told.get('nap', '1')}",
        f"me={_digits(told, 'uid')}:{_digits(told, 'gid')}",
        f"cap={kept_cap // 512}",
        f"quiet() {{ {_exports()}; }}",
        f"command_shell() {{ {run}; }}",
        f"apart={has.get('setsid', '')}",
    ]
    return Target(
        facts=_facts(told, shell, has),
        settings="; ".join(settings),
        command_prefix=b"" if shell == "bash" or source == _EVALUATE else b"exec 9<&-; ",
        has_proc="proc" in told,
        has_digest="sha256sum" in has,
        has_tee="tee" in has,
        grep_sees_all=told.get("grep_nul") == "1",
        python=has.get("python3") or has.get("platform-python"),
        superuser=told.get("uid") == "0",
    )


def _told(answer: bytes) -> dict[str, str]:
    told: dict[str, str] = {}
    for field in answer.split(b"\0")[:-1]:
        key, equals, value = field.partition(b"=")
        if not equals or len(value) > 4096:
            raise Garbage("a probe without sense")
        told[key.decode("ascii", "replace")] = value.decode("utf-8", "surrogateescape")
    for name, possible in _POSSIBLE.items():
        # They become part of the script: only what it could have said itself.
        if told.get(name, "") not in possible:
            raise Garbage(f"a probe without sense about {name}")
    programs = [name for name in told if name.startswith("has ")]
    for name in programs:
        if not _PROGRAM.fullmatch(told[name]):
            told[name] = ""
    return told


_PROGRAM = re.compile(r"[A-Za-z0-9/._+-]{1,200}")
_POSSIBLE = {
    "take": ("", "dd bs=65536 iflag=count_bytes,fullblock count=", "head -c "),
    "find_prints": ("", "1"),
    "mv_flag": ("", "-T"),
    "grep_nul": ("", "1", "2"),
    "nap": ("", "0.2"),
}


def _digits(told: dict[str, str], key: str) -> str:
    value = told.get(key, "")
    if not value.isascii() or not value.isdigit() or len(value) > 12:
        raise Garbage(f"a probe without sense about {key}")
    return value


def _exports() -> str:
    pairs = (f"{name.decode()}={quoted(value).decode()}" for name, value in QUIET.items())
    return "export " + " ".join(pairs)


def _facts(told: dict[str, str], shell: str, has: dict[str, str]) -> TargetFacts:
    homes = (told.get("home", ""), told.get("passwd", ""))
    home = next((home for home in homes if home.startswith("/")), "/")
    umask = _digits(told, "umask")
    if set(umask) - set("01234567"):
        raise Garbage("a probe without sense about umask")
    # The same as the engine makes of them, since it is the same machine.
    parts = (told.get("machine", "").strip(), told.get("boot", "").strip() or told.get("node", ""))
    whole = "\0".join([*parts, told.get("root", "")])
    capabilities = {"shell_fallback"} | {name for name in ("rg",) if name in has}
    if "tee" in has:
        capabilities.add("kept_output")
    return TargetFacts(
        home=home,
        machine_id=hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:32],
        platform=told.get("system", "").lower()[:40] or "unknown",
        shell=shell,
        capabilities=frozenset(capabilities),
        umask=int(umask, 8) & 0o777,
    )
