"""The content of an `ask` step: a question before the outcome is seen, and the source of its right answer.

Answers are compared as sets of words, so that `byzantium, athens` and `athens and byzantium` are one answer, and `nobody` is
an empty one.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from quarterdeck.backend.scenarios.format.values import EventKind, Label, Name, ScenarioModel

LETTERS = "abcdef"
"""By which choices go."""

FILLERS = frozenset(("and", "nobody", "none"))
"""Words of an answer that name nothing."""

Words = frozenset[str]

Partition = Annotated[int, Field(ge=0)]


def words_of(answer: str) -> Words:
    """Return the words of an answer, whatever their order and its commas."""
    return frozenset(word for word in re.split(r"[\s,]+", answer.lower()) if word and word not in FILLERS)


def _plain_text(value: object) -> object:
    """Accept numbers and lists as files have them; they are the same answers."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nobody"
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[
    str, BeforeValidator(_plain_text, json_schema_input_type=str | int | list[str | int]), Field(min_length=1)
]


class AnswerSource(ScenarioModel):
    """What the right answer is read from, when the next expectation has been met: exactly one of these.

    `who_is_removed` compares the greatest list with what it was when the question was asked. What `merges`, `count_of` and
    `lost_partitions` speak of are the records since the last action, as in expectations.
    """

    masters: Literal[True] | None = None
    """All running members that lead."""
    master_of: Label | None = Field(default=None, alias="master-of")
    view_of: Label | None = Field(default=None, alias="view-of")
    version_of: Label | None = Field(default=None, alias="version-of")
    who_is_removed: Literal[True] | None = Field(default=None, alias="who-is-removed")
    who_suspects: Label | None = Field(default=None, alias="who-suspects")
    merges: Literal["who", "into"] | None = None
    """Who went on with a new incarnation in another cluster; or the master that they went to."""
    holders_of: Partition | None = Field(default=None, alias="holders-of")
    lost_partitions: Literal[True] | None = Field(default=None, alias="lost-partitions")
    count_of: EventKind | None = Field(default=None, alias="count-of")
    short_form = {"type": "string"}

    @model_validator(mode="before")
    @classmethod
    def _bare_word(cls, value: object) -> object:
        return {value: True} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _just_one(self) -> AnswerSource:
        if len(self.model_fields_set) != 1 or self.of is None:
            raise ValueError("is read from exactly one thing; write a word as masters, or as in {view-of: athens}")
        return self

    @property
    def form(self) -> str:
        return next(iter(self.model_fields_set))

    @property
    def of(self) -> Any:
        return getattr(self, self.form)


class ScenarioQuestion(ScenarioModel):
    """A question, with `choices` or without. The right answer is a fixed one, or is read from the picture.

    `why` is shown with it, and both when the next expectation has been met; or one after that, if so many have to come before
    it can be seen: the `after`-th.
    """

    question: Name
    choices: Annotated[tuple[Text, ...], Field(max_length=len(LETTERS))] = ()
    answer: Text | None = None
    right: AnswerSource | None = None
    why: str = ""
    after: int = Field(default=1, ge=1, le=20, strict=True)

    @model_validator(mode="after")
    def _answerable(self) -> ScenarioQuestion:
        if (self.answer is None) == (self.right is None):
            raise ValueError(
                "needs one right answer; write either answer: with it, or right: with what it is read from"
            )
        if len(self.choices) == 1:
            raise ValueError("leaves one choice; give two or more, or none and let the trainee write the answer")
        said = [words_of(choice) for choice in self.choices]
        for place, choice in enumerate(self.choices):
            if said[place] in said[:place]:
                raise ValueError(f"the choice {choice!r} stands there twice; leave one out")
        if self.choices and self.answer is not None and words_of(self.answer) not in said:
            raise ValueError(
                f"the answer {self.answer!r} is none of the choices; write one of {'; '.join(self.choices)}"
            )
        return self

    def text_of_choice(self, answer: str) -> str:
        """Return the choice whose letter `answer` is; any other answer stands for itself."""
        place = LETTERS.find(answer.strip().lower().rstrip(".)")) if len(answer.strip().rstrip(".)")) == 1 else -1
        return self.choices[place] if 0 <= place < len(self.choices) else answer.strip()
