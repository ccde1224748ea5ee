"""What an exception says reaches the model unchanged, with a kind."""

from __future__ import annotations

import pickle

import pytest

import operations
from toolkit.calls import ERROR_KINDS
from toolkit.failures import ToolFailure, error_kind, error_text, leaves, pass_interrupt

KINDS = [
    (operations.PathNotFound("a"), "not_found"),
    (operations.PathDenied("a"), "denied"),
    (operations.OutsideRoot("a"), "denied"),
    (operations.PathIsDirectory("a"), "failed"),
    (operations.FileChanged("a"), "changed"),
    (operations.TooLarge("a", 2, 1), "too_large"),
    (operations.SearchTimeout(1), "timeout"),
    (operations.BackendUnavailable("t", "r"), "unavailable"),
    (operations.ConnectionLost("t", "r"), "connection_lost"),
    (operations.OperationUnsupported("o", "r"), "unsupported"),
    (operations.InvalidPattern("(", "r"), "invalid_arguments"),
    (FileNotFoundError(2, "No such file"), "not_found"),
    (PermissionError(13, "no"), "denied"),
    (TimeoutError(), "timeout"),
    (ValueError("x"), "failed"),
    (SystemExit(3), "internal"),
    (GeneratorExit(), "internal"),
    (ToolFailure("t", kind="changed"), "changed"),
]


@pytest.mark.parametrize(("error", "kind"), KINDS, ids=lambda value: type(value).__name__)
def test_every_error_has_its_kind(error, kind):
    """Programs can tell errors apart without reading their text."""
    assert error_kind(error) == kind
    assert kind in ERROR_KINDS


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("exactly this\n"), "exactly this\n"),
        (ValueError(), "ValueError"),
        (ValueError("  \n"), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit(), "SystemExit"),
        (ValueError("a\udc80"), "a\\udc80"),
        (ToolFailure("told"), "told"),
        (ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b")])]), "a\n'b'"),
    ],
)
def test_the_text_is_exactly_what_the_error_says(error, text):
    """An error without text is told by its type, a group by its leaves."""
    assert error_text(error) == text


def test_an_error_whose_text_cannot_be_made_is_told_by_its_type():
    """A broken `__str__` does not break the answer."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert error_text(Broken()) == "Broken"


def test_a_group_has_the_kind_that_its_leaves_share():
    """Different kinds are just a failure."""
    same = ExceptionGroup("g", [FileNotFoundError(), operations.PathNotFound("a")])
    mixed = ExceptionGroup("g", [FileNotFoundError(), ValueError()])
    assert (error_kind(same), error_kind(mixed)) == ("not_found", "failed")


def test_leaves_come_in_order():
    """At any depth."""
    a, b, c = ValueError("a"), ValueError("b"), ValueError("c")
    assert list(leaves(ExceptionGroup("g", [ExceptionGroup("h", [a, b]), c]))) == [a, b, c]


def test_an_interrupt_passes_also_from_within_a_group():
    """Ctrl-C is never a tool's to keep."""
    group = BaseExceptionGroup("g", [ValueError(), BaseExceptionGroup("h", [KeyboardInterrupt()])])
    with pytest.raises(KeyboardInterrupt):
        pass_interrupt(group)
    pass_interrupt(SystemExit())


def test_a_tool_failure_can_be_pickled():
    """Its text is not doubled on the way."""
    failure = pickle.loads(pickle.dumps(ToolFailure("t", kind="denied", details={"a": 1})))
    assert (str(failure), failure.kind, failure.details) == ("t", "denied", {"a": 1})


def test_what_a_target_says_cannot_act_on_a_terminal() -> None:
    error = operations.BackendUnavailable("ssh://x", "bye \x1b[31mred\x1b[0m\nsecond\x00\x07\x9b1m")
    assert error_text(error).endswith("bye \\x1b[31mred\\x1b[0m\nsecond\\x00\\x07\\x9b1m")
