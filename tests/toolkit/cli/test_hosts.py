"""What `--on` names: ranges of hosts, files of targets, and what is none of these."""

from __future__ import annotations

import contextlib
import itertools
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.cli.hosts import MOST_HOSTS, expand_ranges, labels, read_targets


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("ssh://web[1-3]", ["ssh://web1", "ssh://web2", "ssh://web3"]),
        ("ssh://web[08-11]/srv", [f"ssh://web{n}/srv" for n in ("08", "09", "10", "11")]),
        ("ssh://[a,b-cd,7-8].lan:22", [f"ssh://{n}.lan:22" for n in ("a", "b-cd", "7", "8")]),
        ("ssh://r[1-2]n[a,b]", ["ssh://r1na", "ssh://r1nb", "ssh://r2na", "ssh://r2nb"]),
        ("ssh://u[1-2]@h", ["ssh://u1@h", "ssh://u2@h"]),
        ("ssh://10.0.0.[9-10]?via=j", ["ssh://10.0.0.9?via=j", "ssh://10.0.0.10?via=j"]),
        ("ssh://h:220[1-2]", ["ssh://h:2201", "ssh://h:2202"]),
        ("ssh://[fe80::[1-2]]:22", ["ssh://[fe80::1]:22", "ssh://[fe80::2]:22"]),
        ("docker://db[0-1]/x", ["docker://db0/x", "docker://db1/x"]),
        ("ssh://web[5]", ["ssh://web5"]),
    ],
)  # fmt: skip
def test_ranges_are_counted_listed_and_multiplied(text: str, means: list[str]) -> None:
    assert expand_ranges(text) == means


@pytest.mark.parametrize(
    "text",
    [
        "local:",
        "local:/srv/[1-3]",
        "memory:/a[b,c]",
        "command:sh -c 'ls [1-9]'",
        "command:ssh://x[1-2]",
        "ssh://[::1]",
        "ssh://root@[fe80::1%eth0]:2222/x[1-2]",
        "ssh://web/releases/[1-2]",
        "ssh://web?env=A=[1-2]",
        "docker+run://python:3/x[1-2]?env=A=[1,2]",
        "nonsense[1-2]",
        "",
    ],
)
def test_brackets_elsewhere_are_left_alone(text: str) -> None:
    assert expand_ranges(text) == [text]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ssh://web[9-1]", "9-1 runs backwards; write [1-9]"),
        ("ssh://web[01-100]", "as in [001-100]"),
        ("ssh://web[1-010]", "as in [001-010]"),
        ("ssh://web[1-99999]", "1-99999 means 99999 hosts; at most 10000"),
        ("ssh://a[1-200]b[1-200]", "means 40000 hosts; at most 10000"),
        (f"ssh://web[1-{'9' * 5000}]", "at most 10000"),
        ("ssh://web[a-c]", "list letters, as in [a,b,c]"),
        ("ssh://web[]", "as in [01-40] or [a,b,7-9]"),
        ("ssh://web[1,,2]", "as in [01-40]"),
        ("ssh://web[1:3]", "as in [01-40]"),
        ("ssh://web[1-3", "a bracket has no partner"),
        ("ssh://web[1-3]]", "a bracket has no partner"),
        ("ssh://web[[1-3]]", "a bracket has no partner"),
    ],
)
def test_what_is_wrong_with_a_range_is_told_with_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"\[") as caught:
        expand_ranges(text)
    assert says in str(caught.value)


NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=4)


@given(
    names=st.lists(NAMES, min_size=2, max_size=3),
    ranges=st.lists(
        st.tuples(st.integers(0, 999), st.integers(0, 15), st.sampled_from([0, 3, 5])),
        min_size=1,
        max_size=2,
    ),
)
def test_a_range_means_each_of_its_numbers_once(
    names: list[str], ranges: list[tuple[int, int, int]]
) -> None:
    """Padded as its ends are, in order."""
    choices = [
        [str(number).zfill(width) for number in range(low, low + more + 1)]
        for low, more, width in ranges
        if width == 0 or low + more < 10**width
    ]
    brackets = [f"[{numbers[0]}-{numbers[-1]}]" for numbers in choices]
    words = names[0] + "".join(f"{bracket}{names[1]}" for bracket in brackets)
    expected = [
        names[0] + "".join(f"{one}{names[1]}" for one in chosen)
        for chosen in itertools.product(*choices)
    ]
    assert expand_ranges(f"ssh://{words}/d") == [f"ssh://{host}/d" for host in expected]


@given(text=st.text(st.sampled_from("ab01[]-,:@/?% é\n"), max_size=30), known=st.booleans())
def test_any_text_means_hosts_or_is_refused_in_words(text: str, known: bool) -> None:
    target = f"ssh://{text}" if known else text
    with contextlib.suppress(ValueError):
        assert 1 <= len(expand_ranges(target)) <= MOST_HOSTS


def urls(*on: str) -> list[str]:
    return [target.url for target in read_targets(on).targets]


def test_one_target_alone_is_not_many() -> None:
    assert not read_targets(["ssh://[::1]"]).many
    assert read_targets(["ssh://web[1-1]"]).many
    assert read_targets(["ssh://a", "ssh://a"]).many


def test_a_file_has_a_target_a_line(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_bytes(
        b"\xef\xbb\xbf# all of them\r\nssh://web[1-2]   # the pair\r\n\r\n"
        b"  local:/a b\n\t# not this\ncommand:sh -c 'x # y'\nssh://a#b"
    )
    assert urls(f"@{hosts}") == [
        "ssh://web1", "ssh://web2", "local:/a b", "command:sh -c 'x # y'", "ssh://a#b",
    ]  # fmt: skip
    assert read_targets([f"@{hosts}"]).many


def test_what_is_named_twice_is_worked_on_once(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("ssh://web2\nssh://web3\nssh://web3\n")
    named = read_targets(["ssh://web[1-2]", f"@{hosts}"])
    assert [target.url for target in named.targets] == ["ssh://web1", "ssh://web2", "ssh://web3"]
    assert named.repeated == ("ssh://web2", "ssh://web3")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"ssh://a\n\nssh://web[3-1]\n", "line 3: 'ssh://web[3-1]': in [3-1], 3-1 runs backwards"),
        (b"ssh://a\n@more\n", "line 2: @more: a file names targets, not files"),
        (b"# none\n\n", "no target stands in it"),
        (b"\xff\xfe", "not UTF-8"),
        (b"ssh://a[1-9999]\nssh://b[1-9999]\n", "at most 10000"),
    ],
)
def test_an_error_in_a_file_names_it_and_the_line(
    content: bytes, says: str, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_bytes(content)
    with pytest.raises(ValueError, match=r"at most|hosts\.txt") as caught:
        read_targets([f"@{hosts}"])
    assert says in str(caught.value)


@pytest.mark.parametrize("file", ["nope.txt", ".", "", "a\0b"])
def test_a_file_that_is_none_is_told(file: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^@"):
        read_targets([f"@{file}"])


def test_labels_are_short_where_that_is_clear() -> None:
    assert labels(["ssh://a@web1:22/x?env=K=s", "docker://db"]) == ["a@web1:22", "db"]
    assert labels(["ssh://web1/x", "ssh://web1/y?env=K=s"]) == [
        "ssh://web1/x",
        "ssh://web1/y?env=K=...",
    ]
    assert labels(["local:", "memory:"]) == ["local:", "memory:"]


def test_a_long_label_is_cut_where_that_leaves_a_difference() -> None:
    folder = "x" * 60
    assert [len(label) for label in labels([f"local:/{folder}/a", f"local:/{folder}/b"])] == [
        40,
        40,
    ]
    middle = [f"local:/{folder}{at}{folder}" for at in "ab"]
    assert labels(middle) == middle
