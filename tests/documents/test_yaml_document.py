"""Every field of a document has a line, and whatever cannot be read is one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.documents.yaml_document import BadDocument, YamlDocument, field_text, text_of

TEXT = "one: 1\ntwo:\n  - a\n  - b: 2\n    c: {d: 3}\n"


@pytest.mark.parametrize(
    ("place", "line"),
    [((), 1), (("one",), 1), (("two",), 2), (("two", 1), 4), (("two", 1, "c", "d"), 5), (("two", 1, "gone"), 4)],
)
def test_a_field_has_the_line_on_which_it_stands_or_that_around_it(place: tuple[str | int, ...], line: int) -> None:
    assert YamlDocument(TEXT, "t.yaml").line(place) == line


def test_data_is_plain() -> None:
    data = YamlDocument(TEXT, "t.yaml").data
    assert data == {"one": 1, "two": ["a", {"b": 2, "c": {"d": 3}}]}
    assert type(data) is dict and type(data["two"]) is list


def test_keys_that_may_be_left_out_are_passed_over() -> None:
    assert YamlDocument("a:\n  b: 1\n", "t.yaml").line(("a", "groups", "b"), ("groups",)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "t.yaml:1: is not YAML: "),
        ("a: b: c", "t.yaml:1: is not YAML: mapping values are not allowed here"),
        ("[" * 30 + "]" * 30, "t.yaml:1: is nested more than 20 deep"),
        ("[" * 3_000, "t.yaml:1: is nested more than 20 deep"),  # which once took many seconds
    ],
)
def test_what_is_no_yaml_is_one_error(text: str, message: str) -> None:
    with pytest.raises(BadDocument) as caught:
        YamlDocument(text, "t.yaml")
    assert str(caught.value).startswith(message)


@given(st.text(max_size=60))
def test_any_text_is_a_document_or_a_bad_one(text: str) -> None:
    try:
        assert YamlDocument(text, "t.yaml").line(("a", 1)) >= 1
    except BadDocument as bad:
        assert str(bad).startswith("t.yaml:")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match="cannot be read: No such file or directory; check the path"):
        text_of(tmp_path / "none.yaml")
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(BadDocument, match="is not UTF-8 text"):
        text_of(tmp_path / "latin")


def test_places_and_hints_for_people() -> None:
    assert field_text(("users", 0, "name")) == "users[1].name"
    assert did_you_mean("prot", ["port", "bind"]) == "did you mean port?"
    assert did_you_mean("zzz", ["port", "bind"]) == "known are port, bind"
    assert str(BadDocument("--port", 0, "", "is bad")) == "--port: is bad"
