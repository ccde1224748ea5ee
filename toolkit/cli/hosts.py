"""Which targets `--on` names: one, several, those of a file, or a range of hosts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.cli.config import url_of
from toolkit.cli.shown import named, shown

__all__ = ["MOST_HOSTS", "Target", "Targets", "expand_ranges", "labels", "read_targets"]

#: More than anybody means; `web[1-100000000]` is a slip of the finger.
MOST_HOSTS = 10_000
_MOST_DIGITS = 15
_LABEL_CHARS = 40
#: A longer file is no list of hosts.
_MOST_BYTES = 16 << 20

# The part of a URL that names hosts; a folder, an option and a command may hold brackets too.
_AUTHORITY = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<host>[^/?]*)(?P<rest>.*)", re.DOTALL)
_ADDRESS = re.compile(r"(?:^|(?<=@))\[[^\[\]]*:[^\[\]]*\]")  # IPv6, which begins a host
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"([0-9]+)-([0-9]+)")
_WORD = re.compile(r"\w[\w.-]*\w|\w")
_LETTERS = re.compile(r"[^\W\d]-[^\W\d]")
_COMMENTED = re.compile(r"(\S+)\s+#.*")


@dataclass(frozen=True, slots=True)
class Target:
    """A target's URL, and where it stands: "hosts.txt, line 3: ", or nothing."""

    url: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Targets:
    """What all `--on` together name.

    Attributes:
        targets: Each once, in the order in which they were named.
        many: False when one was named by itself, not in a file nor by a range.
        repeated: URLs that were named more than once.
    """

    targets: tuple[Target, ...]
    many: bool
    repeated: tuple[str, ...]


def read_targets(on: Sequence[str]) -> Targets:
    """Return what `--on` options name: a target or its name, `@FILE`, or a target with ranges.

    Raises:
        ValueError: A range or file is not as it should be; the text says where and what.
    """
    found: dict[str, Target] = {}
    repeated: dict[str, None] = {}
    many = len(on) > 1
    for text in on:
        lines = list(_lines(text[1:])) if text.startswith("@") else [Target(text)]
        many = many or text.startswith("@")
        for line in lines:
            try:
                told = url_of(line.url)
                urls = expand_ranges(told)
            except ValueError as error:
                raise ValueError(f"{line.origin}{error}") from None
            many = many or urls != [told]
            for url in urls:
                if url in found:
                    repeated[url] = None
                found.setdefault(url, Target(url, line.origin))
        if len(found) > MOST_HOSTS:
            raise ValueError(f"{len(found)} targets are named; at most {MOST_HOSTS} may be")
    return Targets(tuple(found.values()), many, tuple(repeated))


def expand_ranges(text: str) -> list[str]:
    """Return the targets that a text means: its host with each choice of its brackets.

    `[01-40]` counts (with as many digits as its ends have), `[a,b,7-9]` lists, several brackets
    multiply, the last one runs fastest. Only the part between "://" and the next "/" or "?" has
    ranges; brackets with a colon where a host begins are an IPv6 address. Without a range, the text
    itself is returned.

    Raises:
        ValueError: A range is malformed, runs backwards, or gives more than MOST_HOSTS.
    """
    url = _AUTHORITY.fullmatch(text)
    if url is None or "[" not in url["host"]:
        return [text]
    pieces: list[list[str]] = []
    rest = ""  # the host without its ranges
    end = 0
    for match in _BRACKETS.finditer(url["host"]):
        if _ADDRESS.match(url["host"], match.start()):
            continue
        before = url["host"][end : match.start()]
        pieces += [[before], _choices(match[0], match[1], text)]
        rest, end = rest + before, match.end()
    pieces.append([url["host"][end:]])
    if re.search(r"[\[\]]", _ADDRESS.sub("", rest + url["host"][end:])):
        raise ValueError(f"{text!r}: a bracket has no partner; a range is as in web[01-40]")
    count = math.prod(map(len, pieces))
    if count > MOST_HOSTS:
        raise ValueError(f"{text!r} means {count} hosts; at most {MOST_HOSTS} may be named")
    hosts = map("".join, itertools.product(*pieces))
    return [f"{url['scheme']}{host}{url['rest']}" for host in hosts]


def _choices(brackets: str, inside: str, text: str) -> list[str]:
    choices: list[str] = []
    for item in inside.split(","):
        if numbers := _NUMBERS.fullmatch(item):
            choices += _counted(brackets, numbers[1], numbers[2], text)
        elif _LETTERS.fullmatch(item):
            right = "list letters, as in [a,b,c]"
            raise ValueError(f"{text!r}: in {brackets}, {item} is no range of numbers; {right}")
        elif _WORD.fullmatch(item):
            choices.append(item)
        else:
            right = "it holds ranges or names, as in [01-40] or [a,b,7-9]"
            raise ValueError(f"{text!r}: in {brackets}, {item!r} is neither; {right}")
    return choices


def _counted(brackets: str, first: str, last: str, text: str) -> list[str]:
    if len(first) > _MOST_DIGITS or len(last) > _MOST_DIGITS:
        why = f"a number has over {_MOST_DIGITS} digits"
        raise ValueError(f"{text!r}: in {brackets}, {why}; at most {MOST_HOSTS} may be named")
    low, high = int(first), int(last)
    if low > high:
        right = f"write [{last}-{first}]"
        raise ValueError(f"{text!r}: in {brackets}, {first}-{last} runs backwards; {right}")
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        digits = max(len(first), len(last))
        right = f"as in [{first.zfill(digits)}-{last.zfill(digits)}]"
        why = f"{first}-{last} has ends of different widths; with leading zeros both need as many"
        raise ValueError(f"{text!r}: in {brackets}, {why} digits, {right}")
    if high - low >= MOST_HOSTS:
        many = f"{first}-{last} means {high - low + 1} hosts"
        raise ValueError(f"{text!r}: in {brackets}, {many}; at most {MOST_HOSTS} may be named")
    return [str(number).zfill(len(first) if padded else 1) for number in range(low, high + 1)]


def _lines(file: str) -> Iterator[Target]:
    """Read the targets of a file: one a line, without comments and blank lines."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        content = data.decode()
    except OSError as error:
        raise ValueError(f"@{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"@{file}: it is not UTF-8 text") from None
    except ValueError:  # a name with a null character
        raise ValueError(f"@{file}: there is no such name of a file") from None
    if len(data) > _MOST_BYTES:
        raise ValueError(f"@{file}: it is larger than {_MOST_BYTES} bytes")
    found = False
    for number, line in enumerate(content.removeprefix("\ufeff").split("\n"), 1):
        target = line.strip()
        if not target or target.startswith("#"):
            continue
        # A command may have a " #" of its own, but not as its second word.
        commented = _COMMENTED.fullmatch(target)
        target = commented[1] if commented else target
        if target.startswith("@"):
            raise ValueError(f"{file}, line {number}: {target}: a file names targets, not files")
        found = True
        yield Target(target, f"{file}, line {number}: ")
    if not found:
        raise ValueError(f"@{file}: no target stands in it; one a line, as ssh://web1")


def labels(urls: Sequence[str]) -> list[str]:
    """Return a name for each target: its host, or all of it where hosts are the same.

    A long one is cut in its middle, as long as that leaves them different. None holds the value
    of an environment variable, or what could act on a terminal.
    """
    whole = [_plain(named(url)) for url in urls]
    hosts = [_plain(_host(url)) for url in urls]
    short = hosts if _differ(hosts) else whole
    cut = [_cut(label) for label in short]
    return cut if _differ(cut) else short


def _plain(text: str) -> str:
    return shown(text, len(text))


def _differ(texts: list[str]) -> bool:
    return len(set(texts)) == len(texts)


def _cut(label: str) -> str:
    most = _LABEL_CHARS // 2
    return label if len(label) <= _LABEL_CHARS else f"{label[: most - 3]}...{label[-most:]}"


def _host(url: str) -> str:
    match = _AUTHORITY.fullmatch(url)
    return match["host"] if match and match["host"] else named(url)
