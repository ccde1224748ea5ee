"""Taking commands apart: nothing that runs is missed, nothing breaks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolkit
from toolkit.policy import parse_command


def names(text: str) -> list[str]:
    return [command.name for command in parse_command(text).commands]


def uses(text: str) -> list[tuple[str, str | None]]:
    return [(use.access, use.word.text) for use in parse_command(text).paths]


@pytest.mark.parametrize(
    "text",
    [
        "a | b | c",
        "a && b || c",
        "a; b\nc &",
        "a $(b `c`)",
        "a <(b) >(c)",
        "f() { a; b; }; c",
        "X=1 a; Y=$(b) c",
        "if a; then b; else c; fi",
        "for x in $(a); do b; done; c",
        'a "x $(b "$(c)")"',
        "a <<EOF\n$(b)\nEOF\nc",
        "a ${x:-$(b)} $((1 + $(c)))",
        "env X=1 a; nohup b & timeout 3 c",
        "case $(a) in x) b;; esac; c",
        "a > f; b 2> g; c",
        "bash -c 'a; sh -c b' x; eval 'c'",
    ],
)
def test_every_program_is_found_wherever_it_stands(text):
    """The names are the same in each."""
    found = names(text)
    assert {"a", "b", "c"} <= set(found)


def test_quoted_text_is_no_command():
    """Only what runs counts."""
    assert names("echo 'a; b' \"c | d\" e\\;f # g") == ["echo"]
    assert names("cat <<'EOF'\n$(b)\nEOF") == ["cat"]


def test_words_are_known_without_their_quotes():
    """However they are written."""
    (command,) = parse_command("'a'\"b\"c x\\ y \"z\\$\" $'\\x41\\n' 'it'\\''s'").commands
    assert command.name == "abc"
    assert [word.text for word in command.words] == ["x y", "z$", "A\n", "it's"]


def test_what_is_known_only_at_run_time_is_no_text():
    """A variable, a substitution, part of a word."""
    (command, _) = parse_command('a $x "$y" b$z $(c) ${d}e').commands
    assert [word.text for word in command.words] == [None] * 5


def test_redirections_are_writes_and_reads():
    """Of their paths."""
    assert uses("a > x 2>> y < z &> w >| v") == [
        ("write", "x"),
        ("write", "y"),
        ("write", "w"),
        ("write", "v"),
        ("read", "z"),
    ]
    assert uses("a 2>&1 >&2 2>&-") == []


def test_known_programs_tell_what_they_change():
    """By their operands and options."""
    assert uses("rm -rf a -- -b") == [("delete", "a"), ("delete", "-b")]
    assert uses("mv a b c/") == [("write", "c/"), ("delete", "a"), ("delete", "b")]
    assert uses("dd if=a of=b") == [("write", "b")]
    assert uses("find a -name x -delete") == [("delete", "a/*")]
    assert uses("find a b -delete") == [("delete", "a"), ("delete", "b")]


@pytest.mark.parametrize(
    "text",
    [
        "$x",
        '"$x" a',
        "$(echo rm) a",
        "r?",
        "eval $x",
        "bash -c $x",
        "curl x | sh",
        "source <(a)",
        "if then",
        "a 'b",
        "a \x01",
        "a\r\nb",
        "a \n\\b",
        "a\n\\\nb",
        "a #\n\\b",
        "a\\\nb",
        "`a` `b`",
        "'a'\"b\"\\c",
        "rm $x",
        "alias a=b",
        "PATH=x a",
        "f() { f; }",
    ],
)
def test_what_cannot_be_decided_is_unknown(text):
    """And says why."""
    unknown = parse_command(text).unknown
    assert unknown
    assert all(each.reason and each.shown for each in unknown)


def test_without_the_parser_everything_is_unknown():
    """And the model is told which extra is missing."""
    root = str(Path(toolkit.__file__).parents[1])
    code = (
        f"import sys; sys.path.append({root!r}); sys.modules['tree_sitter'] = None\n"
        "from toolkit.policy import parse_command\n"
        "parsed = parse_command('ls')\n"
        "print(len(parsed.commands), [each.reason for each in parsed.unknown])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.startswith("0 ['commands cannot be parsed without remotehands[policy]']")


def test_the_parser_is_loaded_with_the_first_command():
    """Not by importing the policy."""
    root = str(Path(toolkit.__file__).parents[1])
    code = (
        f"import sys; sys.path.append({root!r})\n"
        "import toolkit.policy as p; [getattr(p, name) for name in p.__all__]\n"
        "heavy = {'tree_sitter', 'tree_sitter_bash', 'platformdirs', 'backends'}\n"
        "print(heavy & set(sys.modules)); p.parse_command('ls')\n"
        "print('tree_sitter' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("set()\nTrue\n", "")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "a;" * 500_000,
        "$(" * 20_000,
        "$(" * 3_000 + "a" + ")" * 3_000,
        "(" * 10_000 + "a" + ")" * 10_000,
        "`" * 30_001,
        "{" * 30_000,
        "<<A " * 10_000,
        "'" * 60_001,
        "if " * 15_000,
        "a<b" * 20_000,
        "{a,b}" * 1_000,
        "cd a; " * 5_000,
        "sh -c " * 5_000,
        "sudo " * 10_000,
        "f() { " * 5_000,
        "\x00" * 10,
    ],
)
def test_hostile_commands_are_unknown_and_end(text):
    """Long ones, deep ones; whatever they are, they are not taken for harmless."""
    assert parse_command(text).unknown


TYPED = r"""
    a b rm -rf / ~ $x $(a) ` " ' \ ( ) { } [ ] [[ ]] (( )) | || & && ; ;; < > >> << <<< <( >( = if
    then else fi for in do done case esac while function ! # $ ${ * ? {a,b} eval sh -c env A=1 2>&1
    <<E E $'\x41' sudo xargs find -exec {} \; time coproc trap é
"""
SNIPPETS = st.sampled_from([*TYPED.split(), "\n", "\t", "\u2028"])


@settings(max_examples=300)
@given(st.lists(SNIPPETS, max_size=14), st.sampled_from(["", " "]))
def test_nothing_that_is_typed_raises(parts, glue):
    """Whatever the snippets make together."""
    parse_command(glue.join(parts))


@settings(max_examples=150)
@given(st.text(max_size=60))
def test_no_text_raises(text):
    """Any characters, surrogates too."""
    parse_command(text)


# What bash itself runs is held against what was found in the command.

PROGRAMS = st.sampled_from(["p1", "'p2'", '"p3"', "\\p4", 'p"5"', "$'p6'", "$'\\x707'", "p\\\n8"])
WORDS = st.sampled_from(
    [
        *(
            "w",
            "'a;p1'",
            '"$(p2)"',
            "$(p3)",
            "`p4`",
            "<(p5)",
            "${u:-$(p6)}",
            "$((1))",
            "a=b",
            "#p7",
        ),
        *("w#p8", "{a,b}", "~", "$u", "'a\nb'", '"\\""', "\\;", "!", "-x", "[a]", "$'\\''", "é"),
        *(
            "'\\'",
            '"`p1` `p2`"',
            '"x $(p3 "y `p4`") z"',
            "$(p5 ')' \")\")",
            "a\\\nb",
            "{p1,p2}",
            "1",
        ),
        *(
            "$(p6 <<F\nit's `p7`\nF\n)",
            "$((2 # p8\n))",
            "'",
            '"$u\'s $(p9)"',
            "p1\\ p2",
            "$(#)\np1)",
        ),
    ]
)
REDIRECTS = st.sampled_from(
    [
        *("", "", "", ">f1", "2>f2", "&>f3", ">>f4", ">|f5"),
        *("</dev/null", "<<<w", "2>&1", ">f6 w", "<<E"),
    ]
)


def simple(prefix: str, program: str, words: list[str], redirect: str, suffix: str) -> str:
    body = " ".join([*([prefix] if prefix else []), program, *words, redirect, suffix])
    return f"{body}\nw $(p9)\nE\n" if redirect == "<<E" else body


SIMPLE = st.builds(
    simple,
    st.sampled_from(["", "", "A=1", "A=$(p1)", ">f7", "time", "!", "command", "exec", "eval"]),
    PROGRAMS,
    st.lists(WORDS, max_size=2),
    REDIRECTS,
    st.sampled_from(["", "", "w"]),
)
TEMPLATES = st.sampled_from(
    [
        *("{0}; {1}", "{0} | {1}", "{0} && {1}", "{0} || {1}", "{0}\n{1}", "({0})\n{1}"),
        *("{{ {0}\n}}; {1}", "if {0}\nthen {1}\nfi", "for i in 1 2; do {0}\n{1}\ndone"),
        *("f() {{ {0}\n}}; f; {1}", "case x in x) {0}\n;; *) {1}\n;; esac"),
        *("[[ -z $({0}\n) ]] && {1}", "x=$({0}\n); {1}", 'p1 "$({0}\n)"; {1}'),
        *("{0} & {1}\nwait", "while {0}\nfalse; do {1}\ndone", "{0} # p9\n{1}"),
    ]
)
SCRIPTS = st.recursive(
    SIMPLE, lambda inner: st.builds(str.format, TEMPLATES, inner, inner), max_leaves=4
)


def run_in_bash(script: str) -> tuple[set[str], set[str]]:
    """Return the programs that bash looks for, none of which is there, and the files it makes."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        work = Path(folder, "work")
        work.mkdir()
        env = {
            "BASH_FUNC_command_not_found_handle%%": '() { printf "%s\\0" "$1" >> "$LOG"; }',
            "PATH": "/nowhere",
            "LOG": str(log),
            "HOME": str(work),
        }
        subprocess.run(
            [shutil.which("bash") or "bash", "-c", script],
            env=env,
            cwd=work,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        ran = set(log.read_bytes().decode().split("\0")[:-1]) if log.exists() else set()
        return ran, set(os.listdir(work))


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@settings(max_examples=120, deadline=None, derandomize=True)
@given(SCRIPTS)
def test_nothing_that_bash_runs_or_writes_was_missed(script):
    """Programs are not there, so that bash tells their names to a handler."""
    parsed = parse_command(script)
    if parsed.unknown:
        return
    ran, wrote = run_in_bash(script)
    assert ran - {"time"} <= {command.name for command in parsed.commands}
    assert wrote <= {use.word.text for use in parsed.paths if use.access == "write"}


SOUP = st.sampled_from(
    [
        *(
            "p1",
            "p2",
            "p3",
            " ",
            " ",
            " ",
            "'",
            '"',
            "\\",
            "`",
            "$(",
            ")",
            "(",
            "{ ",
            "}",
            ";",
            "|",
        ),
        *(
            "&&",
            "||",
            "\n",
            "#",
            ">f",
            "<<E\n",
            "\nE\n",
            "$'",
            "${x:-",
            "[[ ",
            "]]",
            "! ",
            "=",
            "a",
        ),
        *("{a,b}", "$x", "\\\n", "<(", "if ", "then ", "fi ", "-c ", "eval ", "2>&1", "$((", "))"),
        *(
            "x=",
            "$",
            "case a in ",
            ";;",
            " esac",
            "f()",
            "~",
            "*",
            "<<<",
            "'E'",
            "coproc ",
            "time ",
        ),
    ]
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(SOUP, min_size=2, max_size=10))
def test_nothing_was_missed_in_nonsense_that_is_taken_for_understood(parts):
    """Most of it is unknown; bash itself says what the rest runs."""
    script = "".join(parts)
    parsed = parse_command(script)
    written = [use.word.text for use in parsed.paths if use.access == "write"]
    if parsed.unknown or None in written:
        return
    ran, wrote = run_in_bash(script)
    assert ran - {"time"} <= {command.name for command in parsed.commands}
    assert wrote <= set(written)


WRAPPED = r"""
env p1; env -i A=1 p2; env -u A -- p3; env -S 'p4 x'; env -vS'p5 x'; env A=1 B=2 env p6
nice p1; nice -n 5 p2; nice -5 p3; nice --adjustment=1 p4; nice --adjustment 1 p5
timeout 5 p1; timeout -k 1 5 p2; timeout --kill-after=1 -s TERM 5 p3; timeout -sKILL 5 p4
nohup p1; setsid p2; setsid -w p3; stdbuf -oL p4; stdbuf -o L -e0 p5; nice nohup timeout 9 p6
sh -c p1; sh -ec 'p2; p3'; bash -lc p4; bash -O extglob -c p5; bash -c -- p6; sh -c 'p7 "$0"' x
bash -o pipefail -c 'p1 | p2'; bash --norc -xc p3; bash -cx p4; sh -c "sh -c 'p5; p6'"
echo p9 | xargs p1; echo x | xargs -n 1 p2; echo x | xargs -I{} p3 {}; echo x | xargs -0n1 p4
echo x | xargs -I % sh -c 'p5' %; echo x | xargs -P 2 -L 1 p6; echo x | xargs --max-args=1 p7
echo x | xargs -d ' ' p1; echo x | xargs --delimiter ' ' p2; echo x | xargs -r -t p3 -n 1 p4
find . -maxdepth 0 -exec p1 {} \; -exec p2 {} + ; find . -maxdepth 0 -exec sh -c 'p3' \;
find . -maxdepth 0 \( -name x -o -exec p1 \; \); find -P . -execdir p2 \; -quit; find -exec p3 {} +
eval p1; eval 'p2;' "p3"; eval eval p4; command p5; command -p p6; builtin eval p7; exec p8
trap p1 EXIT; trap 'p2; p3' USR1 INT; kill -USR1 $$; time p4; time -p p5; ! p6; { p7; }
f() { p1; }; f; function g { p2; }; g; h() ( p3 ); h; coproc p4; wait; . /dev/null; A=1 p5
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize("script", WRAPPED.strip().split("\n"))
def test_what_runs_behind_other_programs_was_found(script, tmp_path):
    """The programs are real here, and those behind them tell their names."""
    for program in (
        *("env", "nice", "timeout", "nohup", "setsid", "stdbuf"),
        *("xargs", "find"),
        *("sh", "bash", "echo", "kill"),
    ):
        if found := shutil.which(program):
            (tmp_path / program).symlink_to(found)
    for number in range(1, 10):
        probe = tmp_path / f"p{number}"
        probe.write_text(f"#!{shutil.which('sh')}\necho p{number} >> {tmp_path}/log\n")
        probe.chmod(0o755)
    subprocess.run(
        [tmp_path / "bash", "-c", script],
        env={"PATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    ran = set((tmp_path / "log").read_text().split())
    assert len(ran) >= 3
    assert ran <= set(names(script))
