"""The policy as hooks: what a model is told, who is asked, what is previewed, what is counted."""

from __future__ import annotations

import json

import anyio
import pytest

from backends.memory import MemoryBackend
from operations import PathNotFound
from toolkit import AbortController, ToolCall, ToolRunner, coding_tools
from toolkit.policy import (
    Answer,
    AuditLog,
    Limits,
    Place,
    Policy,
    PolicyHook,
    Rule,
    place_of,
    profile,
    verify,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Asked:
    """Answers every question alike and keeps them."""

    def __init__(self, answer):
        self.answer = answer
        self.questions = []

    async def __call__(self, question):
        self.questions.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def call(name, number=1, **arguments):
    return ToolCall(id=str(number), name=name, arguments=arguments)


async def run(backend, hook, *calls, **options):
    runner = ToolRunner(
        coding_tools(backend),
        before_tool_call=[hook.before],
        after_tool_call=[hook.after],
        **options,
    )
    async with runner:
        return await runner.run(list(calls))


async def test_a_denied_call_has_no_effect_and_tells_why():
    """Which rule, the reason, and what would be allowed."""
    async with MemoryBackend({"a.txt": "old\n"}) as backend:
        hook = PolicyHook([profile("read-only")], place_of(backend, "memory:"))
        wrote, read = await run(
            backend,
            hook,
            call("write", 1, path="a.txt", content="new"),
            call("read", 2, path="a.txt"),
        )
        assert wrote.error_kind == "blocked"
        assert "rule 3 of profile read-only" in wrote.text
        assert "nothing may be changed" in wrote.text
        assert "Allowed: read, grep, find, ls" in wrote.text
        assert (read.is_error, read.text.strip()) == (False, "old")


async def test_where_nobody_can_be_asked_asking_means_denying():
    """With that reason."""
    async with MemoryBackend() as backend:
        hook = PolicyHook([profile("careful")], place_of(backend, "memory:"))
        (message,) = await run(backend, hook, call("write", path="a", content="x"))
        assert message.error_kind == "blocked"
        assert "Nobody can be asked here" in message.text


async def test_a_question_has_the_call_the_command_and_what_always_means():
    """And the answer decides."""
    ask = Asked(Answer(allow=True))
    async with MemoryBackend() as backend:
        backend.on_command("make x | tee log", "done\n")
        hook = PolicyHook([profile("careful")], place_of(backend, "memory:"), ask=ask)
        (message,) = await run(backend, hook, call("bash", command="make x | tee log"))
        assert message.text.strip() == "done"
    (question,) = ask.questions
    assert question.context.arguments["command"] == "make x | tee log"
    assert [each.name for each in question.command.commands] == ["make", "tee"]
    assert question.always == ("run `make x`", "run `tee log`", "write /work/log")
    assert question.preview is None


async def test_write_and_edit_are_previewed_without_being_done():
    """As a diff; what cannot be shown says why."""
    ask = Asked(Answer(allow=False, reason="not today"))
    async with MemoryBackend({"a.txt": "one\ntwo\n", "b.bin": b"\0\1"}) as backend:
        hook = PolicyHook(
            [profile("careful")], place_of(backend, "memory:"), ask=ask, operations=backend
        )
        messages = await run(
            backend,
            hook,
            call("edit", 1, path="a.txt", edits=[{"old_text": "two", "new_text": "2"}]),
            call("write", 2, path="a.txt", content="one\nthree\n"),
            call("write", 3, path="new\n+++ b.txt", content="x\n"),
            call("edit", 4, path="a.txt", edits=[{"old_text": "nine", "new_text": "9"}]),
            call("write", 5, path="b.bin", content="x"),
        )
        assert await backend.read_file("/work/a.txt") == b"one\ntwo\n"
    assert {message.error_kind for message in messages} == {"blocked"}
    assert messages[0].text.startswith("denied when asked: not today.")
    edited, rewritten, new, failing, binary = (each.preview for each in ask.questions)
    assert "-two\n+2\n" in edited
    assert "-two\n+three\n" in rewritten
    assert "+x\n" in new
    assert new.count("\n+++ ") == 1
    assert "no preview" in failing
    assert "binary" in binary


async def test_always_holds_for_the_pattern_in_this_run_only():
    """And for nothing more: not for what is denied, and not for other programs."""
    ask = Asked(Answer(allow=True, always=True))
    async with MemoryBackend() as backend:
        for command in (
            "git add a",
            "git add -A",
            "git push",
            "git add b; git push",
            "rm a",
            "rm b",
        ):
            backend.on_command(command, "")
        hook = PolicyHook([profile("careful")], place_of(backend, "memory:"), ask=ask)

        async def questions(command):
            before = len(ask.questions)
            (message,) = await run(backend, hook, call("bash", command=command))
            return len(ask.questions) - before, message.error_kind

        assert await questions("git add a") == (1, None)
        assert await questions("git add -A") == (0, None)
        assert await questions("git add b; git push") == (1, None)
        assert await questions("rm a") == (1, None)
        assert await questions("rm a") == (0, None)
        assert await questions("rm b") == (1, None)
        assert await questions("git add a; rm -rf /") == (0, "blocked")


@pytest.mark.parametrize("command", ["python3 a.py", "docker run x", "./run.sh", "make all"])
async def test_always_means_that_very_command_where_a_name_says_little(command):
    """What runs other things is not granted with any arguments."""
    ask = Asked(Answer(allow=True, always=True))
    async with MemoryBackend() as backend:
        for each in (command, f"{command} more"):
            backend.on_command(each, "")
        hook = PolicyHook([Policy(name="p", default="ask")], place_of(backend, "memory:"), ask=ask)
        for each in (command, command, f"{command} more"):
            await run(backend, hook, call("bash", command=each))
    assert len(ask.questions) == 2


async def test_always_of_an_undecided_command_is_for_that_very_text():
    """However long it is."""
    ask = Asked(Answer(allow=True, always=True))
    long = "echo " + "x" * 500
    async with MemoryBackend() as backend:
        for end in ("", " y"):
            backend.on_command(f"$a; {long}{end}", "")
        hook = PolicyHook([Policy(name="p", default="ask")], place_of(backend, "memory:"), ask=ask)
        for command in (f"$a; {long}", f"$a; {long}", f"$a; {long} y"):
            await run(backend, hook, call("bash", command=command))
    assert len(ask.questions) == 2


@pytest.mark.parametrize("answer", [RuntimeError("gone"), True, None])
async def test_a_question_without_an_answer_blocks(answer, tmp_path):
    """The person is gone, or the callback is wrong; it is logged as denied."""
    path = tmp_path / "log"
    async with MemoryBackend() as backend:
        with AuditLog(path) as audit:
            hook = PolicyHook(
                [profile("careful")], place_of(backend, "memory:"), ask=Asked(answer), audit=audit
            )
            (message,) = await run(backend, hook, call("write", path="a", content="x"))
        assert message.text.startswith("denied: the question got no answer")
        with pytest.raises(PathNotFound):
            await backend.read_file("/work/a")
    (entry,) = map(json.loads, path.read_text().splitlines())
    assert entry["action"] == "deny"


async def test_questions_come_one_at_a_time():
    """Of batches that run at once, too; an answer for always spares the next."""
    asking, most = 0, 0

    async def ask(question):
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await anyio.sleep(0.01)
        asking -= 1
        return Answer(allow=True)

    async with MemoryBackend() as backend:
        hook = PolicyHook([profile("careful")], place_of(backend, "memory:"), ask=ask)
        async with (
            ToolRunner(coding_tools(backend), before_tool_call=[hook.before]) as runner,
            anyio.create_task_group() as tasks,
        ):
            for number in range(4):
                one = call("write", number, path=f"f{number}", content="x")
                tasks.start_soon(runner.run, [one])
    assert most == 1


async def test_calls_a_minute_are_limited():
    """In any 60 seconds; the text says when to come back."""
    async with MemoryBackend() as backend:
        limits = Limits(calls_per_minute=2)
        hook = PolicyHook([profile("trusted")], place_of(backend, "memory:"), limits=limits)
        messages = await run(backend, hook, *(call("ls", number) for number in range(3)))
    assert [message.error_kind for message in messages] == [None, None, "blocked"]
    assert "2 calls a minute" in messages[2].text


async def test_seconds_of_bash_are_reserved_and_given_back():
    """A batch cannot take more together than each of its calls may."""
    async with MemoryBackend() as backend:
        backend.on_command("true", "")
        limits = Limits(bash_seconds=100)
        hook = PolicyHook([profile("trusted")], place_of(backend, "memory:"), limits=limits)
        calls = [call("bash", number, command="true", timeout=60) for number in range(2)]
        first, second = await run(backend, hook, *calls)
        assert (first.error_kind, second.error_kind) == (None, "blocked")
        assert "40 s are left" in second.text
        assert "shorter timeout" in second.text
        (again,) = await run(backend, hook, call("bash", command="true", timeout=60))
        assert again.error_kind is None


async def test_what_an_aborted_batch_never_ran_is_given_back():
    """Nothing tells of a call that was not started."""
    controller = AbortController()

    async def abort(context):
        controller.abort("stop")

    async with MemoryBackend() as backend:
        backend.on_command("true", "")
        hook = PolicyHook(
            [profile("trusted")], place_of(backend, "memory:"), limits=Limits(bash_seconds=100)
        )
        async with ToolRunner(
            coding_tools(backend), before_tool_call=[hook.before, abort]
        ) as runner:
            one = call("bash", command="true", timeout=90)
            (message,) = await runner.run([one], controller.signal)
        assert message.error_kind == "not_started"
        (message,) = await run(backend, hook, call("bash", command="true", timeout=90))
        assert message.error_kind is None


async def test_bytes_written_are_limited():
    """Of write and edit together."""
    async with MemoryBackend({"a": "x"}) as backend:
        hook = PolicyHook(
            [profile("trusted")], place_of(backend, "memory:"), limits=Limits(bytes_written=5)
        )
        messages = await run(
            backend,
            hook,
            call("write", 1, path="b", content="é"),
            call("edit", 2, path="a", edits=[{"old_text": "x", "new_text": "yy"}]),
            call("write", 3, path="c", content="12"),
            call("write", 4, path="c", content="1"),
        )
    assert [message.error_kind for message in messages] == [None, None, "blocked", None]
    assert "1 are left and this call has 2" in messages[2].text


async def test_decisions_and_effects_are_logged(tmp_path):
    """One line each, in a chain that holds."""
    path = tmp_path / "audit.jsonl"
    async with MemoryBackend({"a": "x"}) as backend:
        with AuditLog(path) as audit:
            hook = PolicyHook([profile("read-only")], place_of(backend, "memory:/"), audit=audit)
            await run(
                backend,
                hook,
                call("read", 1, path="a"),
                call("write", 2, path="a", content="y"),
                call("read", 3, path="none"),
            )
            head = audit.head
    told = sorted(
        (line["call"], line["kind"], line.get("action"), line.get("error"))
        for line in map(json.loads, path.read_text().splitlines())
    )
    assert told == [
        ("1", "decision", "allow", None),
        ("1", "effect", None, None),
        ("2", "decision", "deny", None),
        ("3", "decision", "allow", None),
        ("3", "effect", None, "not_found"),
    ]
    assert verify(path, head).problem == ""


async def test_a_call_that_cannot_be_logged_does_not_run(tmp_path):
    """The log is closed here; a full disk is the same."""
    async with MemoryBackend() as backend:
        audit = AuditLog(tmp_path / "log")
        hook = PolicyHook([profile("trusted")], place_of(backend, "memory:"), audit=audit)
        audit.close()
        (message,) = await run(backend, hook, call("write", path="a", content="x"))
        assert message.text.startswith("denied: the audit log cannot be written")
        with pytest.raises(PathNotFound):
            await backend.read_file("/work/a")


async def test_rules_over_targets_see_the_url():
    """As it was given."""
    rules = [Rule(action="deny", targets=("ssh://prod*",), reason="not there")]
    place = Place(cwd="/w", home="/h", target="ssh://prod1")
    async with MemoryBackend() as backend:
        hook = PolicyHook([Policy(name="p", rules=tuple(rules), default="allow")], place)
        (message,) = await run(backend, hook, call("ls"))
    assert "not there" in message.text


async def test_a_hook_without_a_policy_is_an_error():
    """It would look like a guard."""
    with pytest.raises(ValueError, match="policies is empty"):
        PolicyHook([], Place(cwd="/", home="/"))
