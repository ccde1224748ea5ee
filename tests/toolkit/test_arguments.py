"""Arguments: known quirks of models are forgiven, everything else is refused in words that help."""

from __future__ import annotations

import copy
import enum
import json
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolkit.arguments import (
    InvalidArguments,
    default_prepare_arguments,
    read_arguments,
    validate_tool_arguments,
)


class Edit(BaseModel):
    old_text: str
    new_text: str
    replace_all: bool = False


class StrictEdit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old_text: str
    new_text: str = ""


class Read(BaseModel):
    path: str
    offset: Annotated[int, Field(ge=1)] | None = None
    limit: int = 10
    ratio: float | None = None
    whole: bool = False


class EditFile(BaseModel):
    path: str
    edits: list[Edit]


class Color(enum.Enum):
    RED = "red"


class Wide(BaseModel):
    when: date | None = None
    color: Color | None = None
    pair: tuple[int, int] | None = None
    mode: Literal["a", "b"] = "a"
    table: dict[str, int] = Field(default_factory=dict)
    either: int | str | None = None
    one: Edit | None = None
    strict: list[StrictEdit] = Field(default_factory=list)
    anything: Any = None
    tags: list[str] | None = None


class Node(BaseModel):
    name: str
    child_nodes: list[Node] = Field(default_factory=list)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    path: str


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    old_text: str = Field(alias="oldText")


def through(model: type[BaseModel], raw: Any) -> BaseModel:
    arguments, _ = read_arguments(raw)
    arguments, _ = default_prepare_arguments(arguments, model)
    return validate_tool_arguments(arguments, model)


def refusal(model: type[BaseModel], raw: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        through(model, raw)
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"path": "f", "offset": "3"}, "offset", 3),
        ({"path": "f", "offset": 3.0}, "offset", 3),
        ({"path": "f", "offset": "3.0"}, "offset", 3),
        ({"path": "f", "limit": " 4 "}, "limit", 4),
        ({"path": "f", "offset": None, "limit": None}, "limit", 10),
        ({"path": "f", "ratio": "0.5"}, "ratio", 0.5),
        ({"path": "f", "ratio": 2}, "ratio", 2.0),
        ({"Path": "f"}, "path", "f"),
        ('{"path":"f"}', "path", "f"),
        ('"{\\"path\\": \\"f\\"}"', "path", "f"),
        ({"path": "12"}, "path", "12"),
        ({"path": '["f"]'}, "path", '["f"]'),
    ],
)
def test_quirks_of_models_are_forgiven(raw, field, value):
    """The tool sees what the model meant, in the type that it asked for."""
    found = getattr(through(Read, raw), field)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"path": "f", "offset": "abc"}, "offset: "),
        ({"path": "f", "offset": True}, "offset: "),
        ({"path": "f", "offset": 3.5}, "offset: "),
        ({"path": "f", "offset": "3.5"}, "offset: "),
        ({"path": "f", "offset": 0}, "offset: "),
        ({"path": "f", "offset": []}, "offset: "),
        ({"path": "f", "whole": 1}, "whole: "),
        ({"path": "f", "whole": "true"}, "whole: "),
        ({"path": None}, "path: "),
        ({"path": 12345}, "path: must be a string"),
        ({}, "path: is required"),
        (None, "path: is required"),
        ("", "path: is required"),
        ({"path": "f", "ratio": float("nan")}, "ratio: is nan"),
        ({"path": "f", "ratio": float("inf")}, "ratio: is inf"),
        ('{"path": "f", "ratio": NaN}', "ratio: is nan"),
        ({"path": "f", "ratio": "nan"}, "ratio: "),
        ({"path": "f", "limit": 10**5000}, "limit: "),
        ({"path": "a\ud800"}, "path: has a lone surrogate (\\ud800) at character 1"),
        ('{"path": "a\\ud800"}', "path: has a lone surrogate"),
        ([{"path": "f"}], "arguments: must be an object"),
        (7, "arguments: must be an object, not 7"),
        ("not json", "arguments: is not JSON"),
        ('{"path": "f", "content": "half of', "ends within a string"),
        ({1: "f"}, "not a string"),
        ({"path": b"f"}, "path: is a bytes"),
        ({"path": "f", "ofset": 3}, "ofset: unknown argument; did you mean 'offset'?"),
        ({"path": "f", "x": 3}, "(known: path, offset, limit, ratio, whole)"),
        ({"path": "f", "offset": 1, "Offset": 2}, "Offset: unknown argument"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(raw, said):
    """A model can correct itself from the text."""
    assert said in refusal(Read, raw)


def test_every_problem_is_listed():
    """One round of correction is enough."""
    told = refusal(Read, {"offset": "x", "limit": "y", "nope": 1})
    assert [line.split(":")[0] for line in told.split("\n")] == ["nope", "path", "offset", "limit"]


@pytest.mark.parametrize(
    "edits",
    [
        [{"oldText": "a", "newText": "b", "replaceAll": True}],
        '[{"oldText": "a", "newText": "b", "replaceAll": true}]',
        {"oldText": "a", "newText": "b", "replaceAll": True},
        '{"oldText": "a", "newText": "b", "replaceAll": true}',
        ['{"old_text": "a", "new_text": "b", "replace_all": true}'],
        [{"old_text": "a", "new_text": "b", "replace_all": True, "reason": "ignored"}],
    ],
)
def test_edits_in_any_known_form_are_accepted(edits):
    """JSON text for a list, one object for a list, camelCase inside, unknown keys inside."""
    params = through(EditFile, {"path": "f", "edits": edits})
    assert params == EditFile(path="f", edits=[Edit(old_text="a", new_text="b", replace_all=True)])


def test_raw_newlines_in_json_text_are_kept():
    """Models forget to escape them."""
    params = through(EditFile, {"path": "f", "edits": '[{"oldText": "a\nb", "newText": ""}]'})
    assert params.edits[0].old_text == "a\nb"


@pytest.mark.parametrize("edits", ["not json", "", "3", [["a"]], [3], None, "[1"])
def test_unparseable_edits_are_an_argument_error(edits):
    """Not an exception of another kind."""
    assert refusal(EditFile, {"path": "f", "edits": edits}).startswith("edits")


def test_the_place_of_a_nested_problem_is_told():
    """With the index in the list."""
    raw = {"path": "f", "edits": [{"old_text": "a", "new_text": "b"}, {"old_text": 1}]}
    told = refusal(EditFile, raw)
    assert "edits[1].old_text: must be a string" in told
    assert "edits[1].new_text: is required" in told


@pytest.mark.parametrize(
    "text",
    ['{"path": "f"', "{'path': 'f'}", "{path: 'f',}", '{"path": "f",}', '```json\n{"path": "f"}'],
)
def test_slightly_wrong_json_is_repaired_and_said_so(text):
    """Where it begins as an object, a library guesses; the caller is told that it did."""
    if text.startswith("`"):
        assert "is not JSON" in refusal(Read, text)
        return
    assert read_arguments(text) == ({"path": "f"}, True)
    assert read_arguments('{"path": "f"}') == ({"path": "f"}, False)


def test_repaired_json_inside_an_argument_is_said_so():
    """The note is due there too."""
    raw = {"path": "f", "edits": "[{'oldText': 'a', 'newText': 'b'}]"}
    arguments, repaired = default_prepare_arguments(raw, EditFile)
    assert repaired
    assert arguments["edits"] == [{"old_text": "a", "new_text": "b"}]


def test_the_caller_s_own_arguments_are_never_changed():
    """Everything happens on a copy."""
    raw = {"path": "f", "edits": [{"oldText": "a", "newText": "b"}], "limit": None}
    before = copy.deepcopy(raw)
    with pytest.raises(InvalidArguments):
        through(EditFile, raw)
    assert raw == before
    read, _ = read_arguments(raw)
    assert read == raw
    assert read["edits"] is not raw["edits"]


def test_strings_stay_strings_where_a_string_is_allowed():
    """Nothing is converted that need not be."""
    params = through(Wide, {"either": "3", "anything": "[1]", "tags": ["1"]})
    assert (params.either, params.anything, params.tags) == ("3", "[1]", ["1"])


def test_json_types_stand_for_python_types():
    """A date is a string in JSON and a tuple a list: strict means strict by JSON's types."""
    raw = {"when": "2026-01-02", "color": "red", "pair": [1, 2], "table": {"camelCase": 1}}
    params = through(Wide, raw)
    assert params.when == date(2026, 1, 2)
    assert (params.color, params.pair, params.table) == (Color.RED, (1, 2), {"camelCase": 1})


def test_nested_models_that_forbid_unknown_keys_ignore_them_all_the_same():
    """At the top level they are an error; deeper they are noise."""
    params = through(Wide, {"strict": [{"oldText": "a", "why": "because"}]})
    assert params.strict == [StrictEdit(old_text="a")]


def test_models_may_hold_themselves():
    """The schema is a graph then."""
    raw = {"name": "a", "childNodes": [{"name": "b", "childNodes": '[{"name": "c"}]'}]}
    assert through(Node, raw).child_nodes[0].child_nodes[0].name == "c"


def test_a_model_that_allows_extra_arguments_gets_them():
    """The tool's author has said so."""
    assert through(Open, {"path": "f", "more": 1}).model_extra == {"more": 1}


@pytest.mark.parametrize("name", ["oldText", "old_text", "OldText"])
def test_aliases_are_known_names(name):
    """By alias and by name."""
    assert through(Aliased, {name: "a"}).old_text == "a"


@pytest.mark.parametrize("depth", [65, 500, 100_000])
def test_deep_nesting_is_refused_in_words(depth):
    """As a value and as text, at any depth."""
    value: Any = 1
    for _ in range(min(depth, 5000)):
        value = [value]
    assert "nested deeper" in refusal(Wide, {"anything": value})
    assert "nested deeper" in refusal(Wide, '{"anything": ' + "[" * depth + "]" * depth + "}")


def test_a_cycle_is_refused_in_words():
    """It cannot have come from JSON, but it must not hang."""
    value: dict[str, Any] = {}
    value["anything"] = value
    assert "nested deeper" in refusal(Wide, value)


def test_an_error_shows_little_of_a_large_argument():
    """Ten megabytes do not come back."""
    assert len(refusal(Read, {"path": ["x" * 10_000_000]})) < 500


def test_what_a_validator_of_the_model_says_is_told():
    """In its own words."""

    class Picky(BaseModel):
        path: str

        @field_validator("path")
        @classmethod
        def check(cls, value: str) -> str:
            raise ValueError(f"{value} is not for you")

    assert refusal(Picky, {"path": "f"}).startswith("path: f is not for you")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["[1]", '{"a": 1}', "{'a'", "3", "3.0", "1e999", "[", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["path", "oldText", "old_text", "edits"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
names = st.sampled_from(
    [name for model in (Read, EditFile, Wide, Node, Aliased) for name in model.model_fields]
)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([Read, EditFile, Wide, Node, Open, Aliased]),
    json_values | st.dictionaries(names | st.text(max_size=6), json_values, max_size=5),
)
def test_any_value_is_validated_or_refused_in_words(model, raw):
    """Nothing else is raised, what passes is of the right type, and the words are valid text."""
    try:
        params = through(model, raw)
    except InvalidArguments as error:
        str(error).encode()
    else:
        assert isinstance(params, model)
        # What was accepted is what the schema says of JSON, read strictly.
        again = json.loads(params.model_dump_json(by_alias=True))
        assert isinstance(validate_tool_arguments(again, model), model)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.text("{}[]\",:'\\ \nabc1", max_size=30))
def test_any_text_is_read_or_refused_in_words(text):
    """Whatever a model writes for its arguments."""
    try:
        arguments, _ = read_arguments(text)
    except InvalidArguments as error:
        str(error).encode()
    else:
        assert isinstance(arguments, dict)
