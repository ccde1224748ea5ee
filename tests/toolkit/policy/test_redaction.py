"""Redaction: no secret in a result, an update or an event, in one piece or cut in two."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import AgentTool, AgentToolResult, ToolCall, ToolFailure, ToolRunner, event_to_dict
from toolkit.function_tool import tool_from_function
from toolkit.policy import Redactor

SECRET = "hunter2-correct-horse"
GITHUB = "ghp_" + "a1B2" * 9
KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----"
)


def a_tool(results: list[str], fails: bool = False) -> AgentTool:
    """Return a tool that shows texts as updates, and the last as its result."""

    async def execute(call_id, params, signal, on_update):
        for text in results:
            on_update(AgentToolResult.text(text, details={"tail": text}))
        if fails:
            raise ToolFailure(results[-1], details={"why": results[-1]})
        return AgentToolResult.text(
            results[-1], details={"x": [results[-1]]}, structured_content={results[-1]: 1}
        )

    async def nothing(note: str = "") -> str:
        """Do nothing."""
        return note

    tool = tool_from_function(nothing)
    return AgentTool(
        name="t", label="T", description="d", parameters=tool.parameters, execute=execute
    )


def run(redactor: Redactor, tool: AgentTool, note: str = "") -> tuple[str, list[str]]:
    """Return the message and all events as text."""
    events: list[str] = []

    def listen(event):
        events.append(str(event_to_dict(event)))

    async def main():
        async with ToolRunner(
            redactor.tools([tool]),
            after_tool_call=[redactor.after],
            listeners=[redactor.listener(listen)],
        ) as runner:
            (message,) = await runner.run([ToolCall(id="1", name="t", arguments={"note": note})])
            return str(message.to_dict())

    return anyio.run(main), events


@pytest.mark.parametrize("secret", [SECRET, GITHUB])
@pytest.mark.parametrize("fails", [False, True])
def test_results_updates_and_events_have_no_secret(secret, fails):
    """Text, details, structured content, keys, and what the model itself wrote."""
    redactor = Redactor({"PASSWORD": SECRET})
    message, events = run(redactor, a_tool([f"it is {secret} here"], fails=fails), note=secret)
    assert len(events) >= 5
    for text in (message, *events):
        assert secret not in text
        assert "redacted: " in text
    assert "it is [redacted" in message


@pytest.mark.parametrize("secret", [SECRET, GITHUB, KEY])
def test_a_secret_that_is_split_over_two_updates_is_in_neither(secret):
    """At every place where it can be split: no six characters of it in a row are shown."""
    redactor = Redactor({"PASSWORD": SECRET})
    for at in range(1, len(secret)):
        first = redactor.result(AgentToolResult.text(f"a {secret[:at]}"), more=True)
        whole = redactor.result(AgentToolResult.text(f"a {secret} b"), more=True)
        shown = first.content[0].text + whole.content[0].text
        for start in range(len(secret) - 5):
            part = secret[start : start + 6]
            is_frame = secret == KEY and part in KEY.split("\n")[0] + KEY.split("\n")[-1]
            assert is_frame or part not in shown, (at, part)


def test_an_update_holds_back_only_its_last_word():
    """The rest is shown as it comes."""
    redactor = Redactor()
    shown = redactor.result(AgentToolResult.text("one two thr"), more=True)
    assert shown.content[0].text == "one two ..."
    shown = redactor.result(AgentToolResult.text("one two three\n"), more=True)
    assert shown.content[0].text == "one two three\n"


def test_what_is_left_of_a_secret_at_a_cut_is_redacted():
    """Where the beginning of an output was left out."""
    redactor = Redactor({"PASSWORD": SECRET})
    cut = {"truncation": {"shown": 1}}
    for text in (SECRET[5:] + " is it", GITHUB[10:] + "\nx", KEY[45:] + "\nrest"):
        shown = redactor.result(AgentToolResult.text(text, details=cut)).content[0].text
        assert text[:8] not in shown
    assert redactor.result(AgentToolResult.text("plain words", details=cut)).content[0].text == (
        "plain words"
    )


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "sk-ant-api03-" + "x" * 40,
        "sk-proj-" + "aB3_" * 12,
        GITHUB,
        "github_pat_" + "A" * 60,
        "glpat-" + "a" * 20,
        "xoxb-123456789012-abcdefghij",
        "sk_live_" + "a" * 24,
        "AIza" + "b" * 35,
        "npm_" + "c" * 36,
        "pypi-AgEI" + "d" * 60,
        "hf_" + "e" * 34,
        "SG." + "f" * 22 + "." + "g" * 43,
        "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "SflKxwRJSMeKKF2QT4",
        KEY,
    ],
)
def test_documented_forms_are_secrets(secret):
    """Alone, in quotes, in an assignment."""
    for text in (secret, f'"{secret}"', f"TOKEN={secret}", f"see {secret}, then"):
        assert secret[12:-2] not in Redactor().text(text)


def test_a_password_in_a_url_or_a_header_is_cut_out_alone():
    """The rest of it is of use."""
    redactor = Redactor()
    assert redactor.text("https://me:pa55word@host/x") == (
        "https://me:[redacted: password in a URL]@host/x"
    )
    header = redactor.text("Authorization: Bearer abcdefgh12345")
    assert header == "Authorization: Bearer [redacted: Authorization header]"


@pytest.mark.parametrize(
    "text",
    [
        "0f3a9c1e5b7d2468ace013579bdf02468ace1357",
        "550e8400-e29b-41d4-a716-446655440000",
        "sk-button primary",
        "https://host:8080/path@x",
        "import hashlib; sha256-" + "A" * 20,
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "npm_config_registry",
        "task-list-of-things-to-do-in-this-project",
        "the authorization: see below",
    ],
)
def test_what_only_looks_random_is_left_alone(text):
    """Hashes and identifiers are what an agent works with."""
    assert Redactor().text(text) == text


def test_a_short_value_is_refused():
    """It would be found everywhere; the value itself is not told."""
    with pytest.raises(ValueError, match="PIN has fewer than 6") as caught:
        Redactor({"PIN": "1234"})
    assert "1234" not in str(caught.value)


def test_values_come_from_the_environment_by_name():
    """One that is not set is no secret."""
    redactor = Redactor.of_variables(["A", "B"], {"A": SECRET, "C": "visible-value"})
    assert redactor.text(f"{SECRET} visible-value") == "[redacted: A] visible-value"


def test_lines_of_a_value_are_secrets_too():
    """`env` shows them apart."""
    assert "second-line" not in Redactor({"X": "first-line\nsecond-line"}).text("a second-line b")


@given(st.text(max_size=300))
def test_any_text_can_be_redacted(text):
    """Twice is the same as once."""
    once = Redactor({"X": SECRET}).text(text)
    assert Redactor({"X": SECRET}).text(once) == once
