"""Whatever engine matches the lines, a search finds the same."""

# ruff: noqa: RUF001 (letters that look alike are what is tested)

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from backends.engine import grepping, search
from backends.engine.faults import Fault
from backends.engine.place import Place
from backends.engine.walk import OsTree
from tests.backends.engine.ripgreps import programs

TEXTS: dict[str, bytes] = {
    "plain.txt": b"needle\nfoo bar\nfoo42 bar\n\nlast line without end",
    "empty.txt": b"",
    "only_newline.txt": b"\n",
    "crlf.txt": b"needle\r\nfoo\r\n\r\nend of line\r\nno end\r",
    "lone_cr.txt": b"one\rtwo\nthree\r\r\nfour\r",
    "mixed.txt": b"a\nb\r\nc\n\r\nfoo\r\n",
    "form_feed.txt": b"a\x0cb\nc\xe2\x80\xa8d\nNEEDLE\nx\x0by\x1cz\x85\xc2\x85\n",
    "spaces.txt": "a b\na\u00a0b\na\u3000b\na\x1fb\na\tb\na\x0bb\n".encode(),
    "words.txt": "naïve café\ncafe\u0301 bar\nÉCOLE école\nΣΑΣ σας ςας\nпривет ПРИВЕТ\n"
    "हिन्दी शब्द\n東京 tokyo\nx_y x‿y\n½ Ⅷ ² ٣ ३\nfoo\u200dbar\nⒶ\n".encode(),
    "case.txt": "İstanbul ISTANBUL istanbul ıstanbul\nſtop STOP stop\nK kelvin K\n"
    "straße STRASSE STRAẞE\nÅ å Å\nǅ ǆ Ǆ\nµ μ Μ\nﬀ ff\nǰ\n".encode(),
    "invalid.txt": b"caf\xe9 needle\nfoo \xff\xfe bar\na\xffb\n\xc3\n"
    b"\xed\xa0\x80 x\nok \xf0\x9f\x98\x80 needle\n",
    "emoji.txt": "😀 needle 😀\n👨‍👩‍👧 family\n".encode(),
    "bom.txt": b"\xef\xbb\xbfneedle at start\nfoo\n",
    "utf16le.txt": "\ufeffneedle é\r\nfoo42\n".encode("utf-16-le"),
    "utf16be.txt": "\ufeffneedle é\nfoo42 😀\n".encode("utf-16-be"),
    "utf16odd.txt": b"\xff\xfen\x00e\x00\x00\xd8x\x00\n\x00f\x00o\x00o\x00z",
    "utf32.txt": "\ufeffneedle\n".encode("utf-32-le"),
    "binary.bin": b"needle\n\x00\x01foo\n",
    "binary_late.bin": b"needle\n" * 20000 + b"\x00",
    "binary_without.bin": b"\x7fELF\x00\x00\x00",
    "binary_after.bin": b"\x00\x00 needle here \x00foo",
    "dash.txt": b"usage: app --help\n-x ->\n",
    "meta.txt": b"[x](y) a{ a{2} $5.00 ^up {b} c|d \\n \\d+ (z) *?+\n#!/bin/sh ~ & % @ = ' \" `\n",
    "long.txt": b"x" * 3000
    + b" needle "
    + b"y" * 3000
    + b"\n"
    + b"foo" * 2000
    + b"\nneedle "
    + b"z" * 1000
    + b"\n",
    "many.txt": b"".join(b"needle %d\n" % number for number in range(300)),
    "code.py": b"import os\nfrom a import b\n\n"
    b"def foo(self, x):\n    return x + 1\n\nclass Foo:\n    pass\n",
    ".hidden": b"needle in hidden\n",
    "-n": b"needle in a name like an option\n",
    "-": b"needle in a dash\n",
    " lead and trail ": b"needle in spaces\n",
    "quote'\"$(x).txt": b"needle in quotes\n",
    "new\nline.txt": b"needle in new line\n",
    "sub/inner/deep.txt": b"deep needle\nfoo\n",
    "sub.txt": b"needle beside sub\n",
    "sub-x/a.py": b"needle = 1\n",
    "build/out.txt": b"needle built\n",
    "src/build/kept.txt": b"needle kept\n",
    "q.log": b"needle log\n",
    "keep.log": b"needle keep\n",
    "sub/x.txt": b"needle x\n",
    "x.txt": b"needle top x\n",
    ".git/config": b"needle in git\n",
    ".gitignore": b"/build/\n*.log\n!keep.log\n",
    "sub/.gitignore": b"x.txt\n",
}

REGEXES = [
    "needle", "foo", "", ".", "^", "$", "^$", "^.$", "foo$", "^foo", "^foo$", "end$", "line$",
    "^\\s*$",
    "foo\\d+", "\\bfoo\\b", "\\Bfoo", "foo\\B", "\\bfoo", "foo\\b", "\\B", "\\b", "\\w+", "\\W",
    "\\W\\W", "^\\w+$",
    "\\d", "\\D$", "\\s", "a\\sb", "a\\Sb", "a.b", "a[^x]b", "[^a-z]", "^[^a-z]+$", "\\S+\\s\\S+",
    "[a-c]", "[^\\w\\s]", "[\\W\\d]", "[^\\W_]x", "[\\s\\S]", "[]x]", "[^]x]", "[-x]", "[x-]",
    "[\\]x]", "[\\^x]", "[a\\-z]",
    "foo|bar", "(foo|bar) bar", "foo|", "|foo", "(?:a|b)c?", "(foo)(42)?", "(?P<word>foo)", "x*",
    "x+", "x?y",
    "x*?y", "x+?", "o{2}", "o{2,}", "o{1,2}", "o{2}?", "o{0}", "a{", "a{2", "{b}", "a{x}", "}",
    "]", "\\{2\\}",
    "\\$5\\.00", "\\^up", "\\|", "\\\\n", "\\\\d\\+", "\\(z\\)", "\\*\\?\\+", "#!", "\\#", "~|&",
    "\\[x\\]\\(",
    "(?i)FOO", "(?i)needle", "(?i:NEEDLE) at", "(?i)k", "(?i)s", "(?i)straße", "(?i)istanbul",
    "(?i)İ", "(?i)ı",
    "(?i)ſtop", "(?i)å", "(?i)σας", "(?i)Σ", "(?i)привет", "(?i)école", "(?i)ǆ", "(?i)µ",
    "(?i)[a-z]topp?", "(?i)[^k]elvin",
    "(?i)ff", "(?i)ǰ", "(?-i:foo)", "(?i)f(?-i:o)O",
    "café", "caf.", "caf\\w", "cafe\\b", "cafe\\w", "é", "[é-ü]", "\\xe9", "\\x{e9}", "\\u00e9",
    "\\u{e9}", "\\U000000e9", "\\x41", "[\\x00-\\x1f]",
    "[^\\x00-\\x7f]", "[\\u0400-\\u04ff]+", "😀", ".needle", "^.needle", "\\w\\w हि", "शब्द\\b",
    "\\bशब", "東京\\b", "\\d+\\s\\d", "[^\\n]x", "[^\\r\\n]+$", "$\\b", "o$\\b", "(?:\\b|$){2}",
    "foo$|^end",
    "x.y", "x\\wy", "foo.bar", "foo\\wbar", "--help", "-x", "->", "^-x", "\\t", "a\\tb", "\\f",
    "\\v", "\\r", "\\r$", "one\\rtwo", "r\\r",
    "x{1000}", "(a+)+b", "(?:foo){3}", "(x+x+)+ needle", "needle (\\d|1\\d)$", "needle 2[0-9]{2}",
    "(^|\\s)needle(\\s|$)",
    "(?:^)foo", "(^)*foo", "()", "(?:)", "(a|)b", "import|def|class", "\\bdef\\s+\\w+\\(",
    "return.*\\+", "a$b", "$^", "o$|e$",
]  # fmt: skip

OUT_OF_DIALECT = [
    "foo(?=1)", "foo(?!1)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?P<n>a)(?P=n)", "(?<n>a)",
    "(?P<n>a)(?P<n>b)", "(?>a)b", "a++", "a*+",
    "a?+", "a{2}+", "a**", "a+*", "a{2}{3}", "*a", "+a", "?a", "{2}a", "a|*", "(*a)", "^*",
    "\\b+", "$?", "(", "a(b", "a)", "(?i", "(?x)a", "(?s).",
    "a(?i)b", "(?m)^a", "(?u)a", "(?#c)a", "(?(1)a|b)", "(?|a)", "[a", "[]", "[^", "[[:alpha:]]",
    "[[a]", "[a&&b]", "[a--b]", "[a~~b]",
    "[z-a]", "[\\d-z]", "[a-\\w]", "[\\b]", "[a-c-e]", "\\", "a\\", "\\A", "\\z", "\\Z", "\\<a",
    "a\\>", "\\pL", "\\p{Greek}", "\\Q.\\E",
    "\\n", "a\nb", "[\\n]", "\\x{a}", "\\0", "\\x00", "\\u12", "\\x{110000}", "\\x{d800}",
    "\\xg1", "\\K", "\\G", "\\R", "\\h", "\\e", "\\C",
    "\\1", "\\y", "\\é", "a{3,1}", "a{1001}", "a{,3}", "\\b{start}", "(?R)", "((((", "x" * 10001,
    "\ud800", "a\0b",
]  # fmt: skip


@pytest.fixture(scope="module", params=["by walk", "by name"])
def tree(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OsTree]:
    """A tree that ripgrep walks by itself, and one whose rules it would take otherwise than git."""
    root = tmp_path_factory.mktemp("tree")
    for name, content in TEXTS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "link.txt").symlink_to("plain.txt")
    (root / "folder_link").symlink_to("sub")
    os.mkfifo(root / "pipe.txt")
    invalid = os.fsencode(root) + b"/bad\xff.txt"
    with open(invalid, "wb") as file:
        file.write(b"needle in a name that is not text\n")
    if request.param == "by name":
        with open(root / ".gitignore", "ab") as file:
            file.write(b"{plain,crlf}.txt\n")
    with pytest.MonkeyPatch.context() as patch:
        # Else our own engine would look at files that ripgrep is here for.
        patch.setattr(grepping, "_OWN_FILES", 0)
        yield OsTree(Place(), os.fsencode(root))


def _run(tree: OsTree, program: str | None, **query: Any) -> tuple[list[Any], dict[str, Any]]:
    final: list[Any] = []
    summary = search.grep(
        tree,
        {"timeout_s": 30.0, **query},
        lambda part: final.extend(part.get("final", ())),
        program=program and os.fsencode(program),
    )
    return final, summary


def _compare(tree: OsTree, **query: Any) -> list[Any]:
    own, own_summary = _run(tree, None, **query)
    assert own_summary["engine"] == "python"
    if not programs():
        pytest.skip("no ripgrep here")
    for program in programs():
        lines, summary = _run(tree, program, **query)
        assert summary["engine"] == "rg"
        assert lines == own
        # How far a search had gone when it had enough is its own business.
        free = {"engine", "binary_skipped"} if summary["more"] else {"engine"}
        assert {**summary, **dict.fromkeys(free)} == {**own_summary, **dict.fromkeys(free)}
    return own


@pytest.mark.parametrize("pattern", REGEXES)
def test_every_engine_finds_the_same_lines(tree: OsTree, pattern: str) -> None:
    _compare(tree, pattern=pattern, limit=100000)


@pytest.mark.parametrize("pattern", REGEXES[::3])
def test_every_engine_folds_case_alike(tree: OsTree, pattern: str) -> None:
    _compare(tree, pattern=pattern, ignore_case=True, limit=100000)


@pytest.mark.parametrize(
    "text",
    [
        "[x](", "a{", "foo", "needle", "$5.00", "\\n", "*?+", "é", "İ", "K", "--help", "-x", " ",
        "\r", "(z)", "#!/bin/sh", "東京",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ignore_case", [False, True])
def test_every_engine_finds_the_same_literals(tree: OsTree, text: str, ignore_case: bool) -> None:
    found = _compare(tree, pattern=text, literal=True, ignore_case=ignore_case, limit=100000)
    assert found


@pytest.mark.parametrize("limit", [1, 2, 5, 40, 299, 300, 301, 302, 330])
@pytest.mark.parametrize("pattern", ["needle", "o", "^"])
def test_every_engine_stops_at_the_same_line(tree: OsTree, pattern: str, limit: int) -> None:
    assert len(_compare(tree, pattern=pattern, limit=limit)) <= limit


@pytest.mark.parametrize(
    "glob", ["*.txt", "sub/**", "**/*.py", "{x,q}.*", "sub*/*", "*.bin", "[!a-z]*", "?.txt"]
)
def test_every_engine_looks_at_the_same_files(tree: OsTree, glob: str) -> None:
    _compare(tree, pattern=".", glob=glob, limit=100000)


@pytest.mark.parametrize("context", [1, 3])
@pytest.mark.parametrize("pattern", ["needle", "foo", "^$", "n", "class|import"])
def test_every_engine_shows_the_same_context(tree: OsTree, pattern: str, context: int) -> None:
    _compare(tree, pattern=pattern, context=context, limit=120)


@pytest.mark.parametrize("max_line_chars", [1, 20, 500])
@pytest.mark.parametrize("pattern", ["needle", "y+", "caf.", "x x|o"])
def test_every_engine_cuts_lines_alike(tree: OsTree, pattern: str, max_line_chars: int) -> None:
    for *_, text, _cut, _before, _after in _compare(
        tree, pattern=pattern, max_line_chars=max_line_chars, limit=1000
    ):
        assert len(text) <= max_line_chars


@pytest.mark.parametrize("pattern", OUT_OF_DIALECT)
def test_what_is_out_of_the_dialect_is_refused_before_any_engine(
    tree: OsTree, pattern: str
) -> None:
    faults = []
    for program in (None, *programs()):
        with pytest.raises(Fault) as caught:
            _run(tree, program, pattern=pattern)
        faults.append(caught.value.arguments)
        assert caught.value.code == "invalid_pattern"
    assert all(fault == faults[0] for fault in faults)
    assert len(faults[0][1]) > 10
