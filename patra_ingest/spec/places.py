"""Where things are in a response, how they are recognised, and what is sent for a parameter."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from patra_ingest.spec.words import Action, Duration, HttpStatus, Text, Word


class Param(Word):
    """One parameter in full: a template, or clauses that are dropped whole when they lack a value.

    The short form is the template alone: `rows: ${page.size}`.
    """

    value: Text | None = Field(None, description="Template; null leaves the parameter out.")
    clauses: tuple[Text, ...] | None = Field(
        None, description="Templates joined to one value; a clause with a null is dropped whole."
    )
    join: str = ","
    pattern: str | None = Field(
        None, description="Regular expression the value must match before it is sent."
    )
    required: bool = Field(False, description="No request is sent without it.")
    repeat: bool = Field(False, description="A list is sent as one parameter per item.")
    keep: str = Field(
        "", pattern=r"^[^&=#\s]*$", description="Characters that are sent as they are, such as +."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.value is None) == (self.clauses is None):
            raise ValueError("give either value or clauses")
        return self

    def templates(self) -> tuple[str, ...]:
        """Return every template of this parameter."""
        return self.clauses if self.clauses is not None else (self.value or "",)


Params = dict[str, Text | Param | None]


def templates_of(param: str | Param) -> tuple[str, ...]:
    """Return every template of a parameter, in either form."""
    return (param,) if isinstance(param, str) else param.templates()


class Select(Word):
    """The fields a source is asked to send; what they are called in the answer may differ."""

    param: str
    fields: tuple[str, ...] = Field(min_length=1)
    join: str = ","
    answers: dict[str, str] = Field({}, description="Field asked for = first name in the answer.")

    def names(self) -> frozenset[str]:
        """Return the first names of the paths that these fields give."""
        return frozenset(self.answers.get(name, name) for name in self.fields)


class When(Word):
    """A condition on a response or an item; everything that is said must hold."""

    status: HttpStatus | tuple[HttpStatus, ...] | None = None
    header: str | None = None
    text: str | None = Field(None, description="The body contains this text.")
    path: str | None = None
    exists: bool | None = Field(None, description="Whether the path or header leads somewhere.")
    empty: bool | None = Field(None, description="Whether it is null, '' or an empty list.")
    equals: str | int | bool | None = None
    one_of: tuple[bool | int | str, ...] | None = None
    matches: str | None = Field(None, description="Regular expression found in the value.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        tests = (self.exists, self.empty, self.equals, self.one_of, self.matches)
        is_tested = any(test is not None for test in tests)
        subject = self.path or self.header
        if self.path and self.header:
            raise ValueError("look at a path or at a header, not at both")
        if bool(subject) != is_tested:
            raise ValueError("a path or header needs exists, empty, equals, one_of or matches")
        if not (subject or self.status or self.text):
            raise ValueError("say what is looked at: status, header, text or path")
        return self


class ErrorRule(Word):
    """What an answer of the source means; the first rule that holds decides."""

    when: When
    do: Action
    wait: Duration | None = Field(None, description="For RETRY and THROTTLE: how long at least.")
    note: str | None = Field(None, description="What people are told.")


class Expectation(Word):
    """A value that an answer must carry, else it is an error and never `0 items`."""

    path: str
    equals: Text | None = Field(None, description="Template, for an echo of what was asked.")
    matches: str | None = None

    @model_validator(mode="after")
    def _is_tested(self) -> Self:
        if (self.equals is None) == (self.matches is None):
            raise ValueError("give either equals or matches")
        return self


class NextPlace(Word):
    """Where the next token or URL is: at a path, in a header, in a Link header, or in a URL."""

    path: str | None = None
    header: str | None = None
    link: str | None = Field(None, description="The rel of a Link header (RFC 8288), as next.")
    param: str | None = Field(
        None, description="The token is this parameter of the URL found at the place."
    )
    last_item: str | None = Field(None, description="Computed from the last item: a value in it.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        places = (self.path, self.header, self.link, self.last_item)
        if sum(place is not None for place in places) != 1:
            raise ValueError("give exactly one of path, header, link and last_item")
        return self


class Total(Word):
    """Where the source promises how many items there are, and how far it may be off."""

    path: str | None = None
    header: str | None = None
    tolerance: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.0, description="Share that may be missing before a slice is incomplete."
    )
    is_estimate: bool = False
    first_page_only: bool = False

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.header is None):
            raise ValueError("give either path or header")
        return self


class FieldSpec(Word):
    """One output field and how its value is found in an item."""

    name: str
    path: str | tuple[str, ...]
    required: bool = False
    one_of: tuple[str | int, ...] | None = Field(
        None, description="The only values it may have; another one puts the item in quarantine."
    )


class Moment(Word):
    """Where an answer carries an instant or a release of the source itself."""

    path: str | None = None
    header: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.header is None):
            raise ValueError("give either path or header")
        return self


class Freshness(Word):
    """An endpoint that says up to when the source is complete; windows end there."""

    endpoint: str
    path: str


Json = Any  # a JSON tree whose texts may be templates
