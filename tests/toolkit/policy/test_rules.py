"""Rules: the first that fits decides, the strictest act counts, patterns mean one thing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.policy import Decision, Place, Policy, Rule, parse_command
from toolkit.policy.acts import acts_of
from toolkit.policy.decisions import decide
from toolkit.policy.patterns import command_pattern, path_glob

PLACE = Place(cwd="/w", home="/home/u", target="ssh://web1/srv")


def judge(
    rules: list[Rule], tool: str = "bash", default: str = "deny", **arguments: object
) -> Decision:
    acts, _ = acts_of(tool, SimpleNamespace(**arguments), PLACE)
    return decide([Policy(name="p", rules=tuple(rules), default=default)], tool, acts, PLACE)


def allow(**criteria: object) -> Rule:
    return Rule(action="allow", **criteria)


def deny(**criteria: object) -> Rule:
    return Rule(action="deny", **criteria)


def test_the_first_rule_that_fits_decides():
    """Order is all there is."""
    rules = [deny(tools=("write",), paths=("*.lock",)), allow(tools=("write",))]
    assert judge(rules, "write", path="a.lock").action == "deny"
    assert judge(rules, "write", path="a.txt").action == "allow"
    assert judge(rules[::-1], "write", path="a.lock").action == "allow"


def test_the_default_is_for_what_no_rule_fits():
    """And is denying unless it is said."""
    assert judge([], "ls").action == "deny"
    assert judge([], "ls", default="ask").action == "ask"
    assert "the default of p" in judge([], "ls").text("ls")


def test_the_strictest_act_of_a_command_decides():
    """One part that is allowed does not carry the other."""
    rules = [deny(commands=("rm",)), Rule(action="ask", commands=("make",)), allow()]
    assert judge(rules, command="ls").action == "allow"
    assert judge(rules, command="ls && make").action == "ask"
    assert judge(rules, command="make; rm x | ls").action == "deny"


def test_paths_are_judged_by_where_they_lead():
    """However they are written."""
    rules = [allow(access=("write",), paths=("src/**", "~/notes/*", "/tmp/x"))]
    for path in ("src/a", "./src/b/../c", "/w/src", "~/notes/n", "/tmp//x", "/tmp/y/../x"):
        assert judge(rules, "write", path=path).action == "allow", path
    for path in ("a", "src/../a", "../src/a", "/src/a", "~/notes/n/m", "/tmp/xy", "~/notes"):
        assert judge(rules, "write", path=path).action == "deny", path


def test_an_access_is_what_is_done():
    """Deleting is a kind of writing, reading is none."""
    rules = [
        deny(access=("delete",)),
        allow(access=("write",)),
        Rule(action="ask", access=("read",)),
    ]
    rules.append(allow(access=("run",)))
    assert judge(rules, command="rm a").action == "deny"
    assert judge(rules, command="touch a").action == "allow"
    assert judge(rules, command="cat < a").action == "ask"
    assert judge([deny(access=("write",)), allow()], command="rm a").action == "deny"


def test_a_rule_that_denies_a_path_covers_the_folder_it_is_in():
    """What would take it along is denied; what stands beside it is not."""
    rules = [deny(paths=("keys/**",)), allow()]
    for command in ("rm -rf keys", "rm -rf .", "rm -rf /w", "rm -rf *", "mv /w /x", "cat keys/a"):
        assert judge(rules, command=command).action == "deny", command
    for command in ("rm -rf build", "rm keys2", "cat a"):
        assert judge(rules, command=command).action == "allow", command
    assert judge(rules, "grep", path=".").action == "deny"
    assert judge(rules, "grep", path="src").action == "allow"


def test_a_rule_for_all_beneath_a_path_is_about_nothing_less():
    """Deleting some files of a folder is not deleting it."""
    rules = [deny(access=("delete",), tree=True, paths=(".",)), allow()]
    for command in ("rm -rf .", "rm -rf ..", "find . -delete", "rm -rf $PWD"):
        assert judge(rules, command=command).action == "deny", command
    for command in ("rm -rf *", "rm *.o", "rm -rf a", "find . -name x -delete", "rm ."):
        assert judge(rules, command=command).action == "allow", command


def test_a_relative_path_may_be_in_any_folder_of_the_command():
    """`cd` is followed, and every folder that it may have led to counts."""
    rules = [allow(access=("write",), paths=("./**",)), allow(access=("run",))]
    assert judge(rules, command="cd sub && touch a").action == "allow"
    assert judge(rules, command="cd sub; cd ../..; touch a").action == "deny"
    assert judge(rules, command="cd / && touch a").action == "deny"
    assert judge(rules, command='cd "$x" && touch a').action == "deny"


def test_targets_and_tools_are_globs():
    """Of the target's URL and the tool's name."""
    assert judge([allow(targets=("ssh://web*",))], "ls").action == "allow"
    assert judge([allow(targets=("docker:*",))], "ls").action == "deny"
    assert judge([allow(tools=("my_*",))], "my_tool").action == "allow"


def test_what_cannot_be_decided_needs_a_rule_that_says_so():
    """Or one without any criterion but tools and targets."""
    unknown = {"command": "$x"}
    assert judge([allow(access=("run",))], **unknown).action == "deny"
    assert judge([allow(unknown=True)], **unknown).action == "allow"
    assert judge([allow(tools=("bash",))], **unknown).action == "allow"
    assert judge([allow(commands=("python",))], command="python -c x").action == "deny"
    rules = [allow(commands=("python",)), allow(commands=("python",), unknown=True)]
    assert judge(rules, command="python -c x").action == "allow"
    assert judge(rules, command="python -c x; $y").action == "deny"


def fits(pattern: str, command: str, *, certain: bool = True) -> bool:
    (parsed,) = parse_command(command).commands
    return command_pattern(pattern).fits(parsed, certain=certain)


@pytest.mark.parametrize(
    ("pattern", "command", "allows", "denies"),
    [
        ("git push", "git push origin main", True, True),
        ("git push", "git -C x push", False, True),
        ("git push", "git commit -m push", False, True),
        ("git push", "git status", False, False),
        ("git push", "git $x", False, False),
        ("git push --force", "git push origin --force", True, True),
        ("git push --force", "git push", False, False),
        ("rm -r -f", "rm -fr x", True, True),
        ("rm -r -f", "rm -r x", False, False),
        ("rm --recursive", "rm --rec x", True, True),
        ("rm", "/bin/rm x", True, True),
        ("rm", "./rm x", False, True),
        ("./rm", "./rm x", True, True),
        ("npm run *", "npm run build", True, True),
        ("npm run test*", "npm run build", False, False),
        ("mkfs.*", "mkfs.ext4 x", True, True),
        ("echo a?c", "echo abc", True, True),
        ("[", "xargs", False, False),
    ],
)
def test_command_patterns(pattern, command, allows, denies):
    """In doubt a pattern fits for a rule that denies, and does not for one that allows."""
    assert fits(pattern, command, certain=True) is allows
    assert fits(pattern, command, certain=False) is denies


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["/w/a.py"], ["/w/s/a.py", "/a.py", "/w/a.pyc"]),
        ("**/*.py", ["/a.py", "/w/s/a.py"], ["/a.txt"]),
        ("/a/**/b", ["/a/b", "/a/x/y/b"], ["/a/bb", "/b"]),
        ("/a/{b,c}/d", ["/a/b/d", "/a/c/d"], ["/a/{b,c}/d"]),
        ("/a/[bc]", ["/a/b"], ["/a/d", "/a/[bc]"]),
        ("/a/[*]", ["/a/*"], ["/a/b"]),
        (".", ["/w"], ["/", "/w/a"]),
        ("./**", ["/w", "/w/a/b"], ["/", "/wa"]),
        ("~", ["/home/u"], ["/home", "/home/u/a"]),
        ("/", ["/"], ["/a"]),
        ("/**", ["/", "/a/b"], []),
    ],
)
def test_path_globs(glob, yes, no):
    """Beneath the working folder, the home, or anywhere."""
    compiled = path_glob(glob, "/w", "/home/u")
    assert [path for path in yes if not compiled.fits(path)] == []
    assert [path for path in no if compiled.fits(path)] == []


def test_a_working_folder_with_wildcards_in_its_name_is_itself():
    """Only the rule's own text is a pattern."""
    glob = path_glob("a", "/x*[y]{b,c}", "/h")
    assert glob.fits("/x*[y]{b,c}/a")
    assert not glob.fits("/xz/a")
    assert not glob.fits("/x*[y]b/a")


@given(st.text(alphabet="ab*?/", max_size=30), st.text(alphabet="ab/", max_size=200))
def test_no_glob_takes_long(glob, path):
    """Many stars are no reason to go back and forth; this ends, that is all."""
    path_glob("/" + glob, "/w", "/h").fits("/" + path)


@pytest.mark.parametrize(
    ("criteria", "said"),
    [
        ({"action": "alow"}, "'alow'"),
        ({"action": "deny", "access": ("exec",)}, "'exec' is none of read"),
        ({"action": "deny", "paths": ("a",), "commands": ("b",)}, "not both"),
        ({"action": "deny", "commands": ("a | b",)}, "'|'"),
        ({"action": "deny", "commands": ("",)}, "begins with the name"),
        ({"action": "deny", "paths": ("~bob/x",)}, "no other's"),
        ({"action": "deny", "paths": ("../x",)}, "'..'"),
        ({"action": "deny", "tools": "bash"}, "'bash'"),
    ],
)
def test_a_rule_without_meaning_is_refused(criteria, said):
    """With the value, and what would be right."""
    with pytest.raises(ValueError, match=r".") as caught:
        Rule(**criteria)
    assert said in str(caught.value)


def test_a_denial_tells_rule_reason_and_what_is_allowed():
    """So that a model can do better."""
    rules = [
        deny(commands=("curl",), reason="no network", instead="the cache in ./vendor"),
        allow(),
    ]
    text = judge(rules, command="curl x").text("bash")
    assert text == (
        "rule 1 of p (deny any use of `curl`) denies this: run `curl x`. Why: no network. "
        "Allowed: the cache in ./vendor."
    )
    hint = judge([allow(tools=("bash",), commands=("git status",))], command="ls").text("bash")
    assert hint.endswith("Allowed: any use by bash of `git status`.")
    assert judge([], command="ls").text("bash").endswith("Nothing of bash is allowed.")


def test_each_policy_has_a_veto():
    """Whatever their order."""
    acts, _ = acts_of("ls", SimpleNamespace(path="."), PLACE)
    policies = [Policy(name=name, default=name) for name in ("allow", "ask", "deny")]
    for order in (policies, policies[::-1]):
        assert decide(order, "ls", acts, PLACE).policy.name == "deny"
        assert decide(order[:2], "ls", acts, PLACE).action in ("ask", "deny")
