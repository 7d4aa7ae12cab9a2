"""YAML documents: plain data, the line on which every field stands, and one clear error for every mistake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from quarterdeck.backend.documents.validation import did_you_mean, validation_problem_text

FieldPath = tuple[str | int, ...]
"""Keys and positions that lead from the whole document to one field."""

Problem = tuple[FieldPath, str]
"""A mistake: its place, its words, its remedy."""

Known = Callable[[FieldPath], tuple[str, Iterable[str]]]
"""For the place of an unknown name: the kind of name, and the known names."""

DEEPEST_NESTING = 20

LARGEST_BYTES = 4 * 1024 * 1024
"""No document that a person writes is longer."""

M = TypeVar("M", bound=BaseModel)


class BadDocument(ValueError):
    """A document that cannot be used. The message names file, line and field, the problem, and a remedy."""

    def __init__(self, file: str, line: int, field: str, problem: str) -> None:
        """`line` counts from 1; 0 for a document without lines."""
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {field + ': ' if field else ''}{problem}")
        self.file = file
        self.line = line
        self.field = field


class YamlDocument:
    """Return the content of `text`, as `data`; `file` names it in errors. Raises `bad`, a kind of `BadDocument`."""

    def __init__(self, text: str, file: str, bad: type[BadDocument] = BadDocument) -> None:
        self.file = file
        self._bad = bad
        yaml = YAML(typ="rt")
        yaml.max_depth = DEEPEST_NESTING + 1  # deep ones cost the square of their depth
        try:
            self._tree = yaml.load(text)
            self.data: Any = _plain(self._tree)
        except (RecursionError, MaxDepthExceededError) as too_deep:
            raise bad(file, 1, "", f"is nested more than {DEEPEST_NESTING} deep; check its anchors") from too_deep
        except MarkedYAMLError as failure:
            mark = failure.problem_mark or failure.context_mark
            line = mark.line + 1 if mark else 1
            raise bad(file, line, "", f"is not YAML: {(failure.problem or str(failure)).splitlines()[0]}") from failure
        except (YAMLError, ValueError) as failure:
            raise bad(file, 1, "", f"is not YAML: {str(failure).splitlines()[0]}") from failure

    def fields(self, otherwise: str, *, may_be_empty: bool = False) -> dict[str, Any]:
        """Return the data as a mapping.

        Raises:
            BadDocument: It is something else, which `otherwise` says.
        """
        if self.data is None and may_be_empty:
            return {}
        if not isinstance(self.data, dict):
            raise self._bad(self.file, 1, "", otherwise)
        return self.data

    def read(
        self,
        model: type[M],
        data: object,
        known: Known | None = None,
        *,
        at: FieldPath = (),
        context: dict[str, Any] | None = None,
    ) -> M:
        """Return `data`, which stands at the place `at`, as a `model`.

        `known` is for models whose names depend on more than the place.

        Raises:
            BadDocument: There are mistakes; the message names the one that stands first.
        """
        try:
            return model.model_validate(data, context=context)
        except ValidationError as failure:
            problems = [((*at, *place), text) for place, text in problems_of(failure, known or names_in(model))]
            raise self.first(problems) from failure

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Refuse a document with problems.

        Raises:
            BadDocument: There are some; the message names the one that stands first.
        """
        found = list(problems)
        if found:
            raise self.first(found)

    def first(
        self,
        problems: Iterable[Problem],
        passed_over: Collection[str] = (),
        field: Callable[[FieldPath], str] | None = None,
    ) -> BadDocument:
        """Return the one of these problems that stands first, as an error; `field` puts places into words."""
        placed = [(self.line(place, passed_over), place, problem) for place, problem in problems]
        line, place, problem = min(placed, key=lambda found: found[0])
        return self._bad(self.file, line, (field or field_text)(place), problem)

    def line(self, place: FieldPath, passed_over: Collection[str] = ()) -> int:
        """Return the line, from 1, of the field at `place`, or of the innermost thing around it that has one.

        Keys that are `passed_over` may be left out in the document.
        """
        line, node = 0, self._tree
        for step in place:
            if isinstance(node, CommentedMap) and step in node.lc.data:
                line = node.lc.key(step)[0]
            elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
                line = node.lc.item(step)[0]
            elif step in passed_over:
                continue
            else:
                break
            node = node[step]
        return int(line) + 1


def text_of(path: Path, bad: type[BadDocument] = BadDocument) -> str:
    """Return the text of the file `path`.

    Raises:
        BadDocument: As `bad`, when the file cannot be read, or is no text.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise bad(str(path), 1, "", f"has {size} bytes; write no more than {LARGEST_BYTES}")
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise bad(str(path), 1, "", f"cannot be read: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise bad(str(path), 1, "", f"is not UTF-8 text: {problem.reason} at byte {problem.start}") from problem


def field_text(place: FieldPath) -> str:
    """Return a place as people read it; places in a list are counted from 1."""
    text = ""
    for step in place:
        text += f"[{step + 1}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


def validation_problems(failure: ValidationError) -> Iterator[tuple[FieldPath, ErrorDetails]]:
    """Yield what is wrong, and where.

    Mistakes in the whole of something of which a part is wrong are left out, for they only follow from the latter.
    """
    found = [(tuple(step for step in error["loc"] if step != "[key]"), error) for error in failure.errors()]
    for place, error in found:
        if not any(len(other) > len(place) and other[: len(place)] == place for other, _ in found):
            yield place, error


def problems_of(failure: ValidationError, known: Known) -> Iterator[Problem]:
    """Yield the mistakes in words."""
    for place, error in validation_problems(failure):
        if error["type"] == "extra_forbidden":
            noun, names = known(place)
            yield place, f"there is no such {noun}; {did_you_mean(str(place[-1]), names)}"
        else:
            yield place, validation_problem_text(error)


def names_in(root: type[BaseModel]) -> Known:
    """Return a lookup of the names of the fields around each place of a `root`, as its types have them."""

    def known(place: FieldPath) -> tuple[str, Iterable[str]]:
        model = root
        for step in place[:-1]:
            inner = next((field for name, field in model.model_fields.items() if step == field_name(name, field)), None)
            model = model if inner is None else inner_model(inner) or model
        return "field", [field_name(name, field) for name, field in model.model_fields.items()]

    return known


def field_name(name: str, field: FieldInfo) -> str:
    """How a field is written."""
    return field.alias or name


def inner_model(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model that stands in a field, alone, in a list, or under names."""
    parts = getattr(field.annotation, "__args__", ())
    plain = [getattr(part, "__origin__", part) for part in parts]  # of what is annotated: the type itself
    return next(
        (kind for kind in (field.annotation, *plain) if isinstance(kind, type) and issubclass(kind, BaseModel)), None
    )


def _plain(node: Any, depth: int = 0) -> Any:
    """Return the tree in plain Python types: the loader's own carry positions, and would show in error messages."""
    if depth > DEEPEST_NESTING:
        raise RecursionError
    match node:
        case CommentedMap():
            return {_plain(key, depth + 1): _plain(value, depth + 1) for key, value in node.items()}
        case CommentedSeq():
            return [_plain(value, depth + 1) for value in node]
        case bool():
            return bool(node)
        case int() | float() | str():
            plain: type = next(kind for kind in (int, float, str) if isinstance(node, kind))
            return plain(node)
    return node
