"""What a pack leaves open, and how it is filled in before anything else of it is read.

`${parameters.NAME}` stands in the place of a value that is given when the pack is applied. A value
that is nothing but such a place and gets nothing is left out; inside a longer text that is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from patra_ingest.errors import PackError
from patra_ingest.registry.pack_file import PackText
from patra_ingest.spec.words import Word

_PLACE = re.compile(r"\$\{\s*parameters\b([^}]*)\}")
_NAME = re.compile(r"\.([a-z][a-z0-9_]{0,63}(?:\.[a-z][a-z0-9_]{0,63})?)\s*", re.ASCII)
_NOTHING: Final = object()

Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Scalar = str | int | float


def _choices(said: Any) -> Any:
    """Read `[DAY, SECOND]` as choices from which nothing else follows."""
    return {str(one): {} for one in said} if isinstance(said, list | tuple) else said


class ParameterPart(Word):
    """A value that the file leaves open; `${parameters.NAME}` stands in its place."""

    description: str = Field(description="What it is, for whoever applies the pack.")
    default: Scalar | None = Field(
        None, description="Taken when none is given; '' is no value. Without it one must be given."
    )
    one_of: Annotated[
        dict[str, dict[Key, Scalar]],
        BeforeValidator(_choices, json_schema_input_type=list[str] | dict[str, dict[Key, Scalar]]),
    ] = Field(
        {}, description="The only values; what follows from each is `${parameters.NAME.WORD}`."
    )


class _Open(Word):
    parameters: dict[Key, ParameterPart] = Field({})


@dataclass(frozen=True)
class Filling:
    """What the places of one file become; one without a value is refused where it is used."""

    text: PackText
    declared: Mapping[str, ParameterPart]
    values: Mapping[str, Scalar]

    @property
    def missing(self) -> list[str]:
        """The parameters that nobody gave a value."""
        return [name for name in self.declared if name not in self.values]

    def fill(self, tree: Any, path: tuple[str | int, ...] = ()) -> Any:
        """Return a tree of the file with its places filled in."""
        if isinstance(tree, dict):
            both = ((key, self.fill(value, (*path, key))) for key, value in tree.items())
            kept = {key: value for key, value in both if value is not _NOTHING}
            return kept if kept or not tree else _NOTHING
        if isinstance(tree, list):
            items = (self.fill(value, (*path, place)) for place, value in enumerate(tree))
            return [value for value in items if value is not _NOTHING]
        return self._text(tree, path) if isinstance(tree, str) else tree

    def _text(self, text: str, path: tuple[str | int, ...]) -> Any:
        if place := _PLACE.fullmatch(text):
            value = self._value(place, path)
            return _NOTHING if value == "" else value
        return _PLACE.sub(lambda place: self._inside(place, path), text)

    def _inside(self, place: re.Match[str], path: tuple[str | int, ...]) -> str:
        value = self._value(place, path)
        if value == "":
            raise self._refusal(path, f"{place[0]} is empty inside a longer text")
        return str(value)

    def _value(self, place: re.Match[str], path: tuple[str | int, ...]) -> Scalar:
        name = _NAME.fullmatch(place[1])
        if name and name[1] in self.values:
            return self.values[name[1]]
        if name and name[1].partition(".")[0] in self.missing:
            raise _not_given(self.text.where, [name[1].partition(".")[0]])
        raise self._refusal(path, f"{place[0]} is not declared under parameters")

    def _refusal(self, path: tuple[str | int, ...], reason: str) -> PackError:
        line = self.text.line_of(path)
        place = f", line {line}" if line else ""
        return PackError(f"{self.text.where}{place}: {reason}.", "Correct it.")


def read_filling(text: PackText, given: Mapping[str, Scalar]) -> Filling:
    """Return what the places of a file become with the values that were given.

    What cannot be read under `parameters` is a ValidationError, with its place.
    """
    declared = _Open.model_validate({"parameters": text.value.get("parameters", {})}).parameters
    values: dict[str, Scalar] = {}
    for name in given:
        if name not in declared:
            raise _unknown(text.where, name, list(declared))
    for name, part in declared.items():
        value = given.get(name, part.default)
        if value is not None:
            values |= _meant(text.where, name, part, value)
    return Filling(text, declared, values)


def filled(text: PackText, given: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return a whole file with every place filled in; PackError when a value was not given."""
    filling = read_filling(text, given)
    if filling.missing:
        raise _not_given(text.where, filling.missing)
    rest = {key: value for key, value in text.value.items() if key != "parameters"}
    whole: dict[str, Any] = filling.fill(rest)
    return whole


def _meant(where: str, name: str, part: ParameterPart, value: Scalar) -> dict[str, Scalar]:
    value = _of_its_kind(where, name, part, value)
    if part.one_of and str(value) not in part.one_of:
        known = ", ".join(part.one_of)
        raise PackError(f"{where}: the parameter {name} cannot be {value!r}.", f"Choose: {known}.")
    follows = part.one_of.get(str(value), {})
    return {name: value, **{f"{name}.{word}": said for word, said in follows.items()}}


def _of_its_kind(where: str, name: str, part: ParameterPart, value: Scalar) -> Scalar:
    """Read a number where the default is one: values of the command line are texts."""
    if isinstance(part.default, str | None) or not isinstance(value, str):
        return value
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        what = f"{where}: the parameter {name} is {value!r:.60}, which is no number"
        raise PackError(f"{what}.", f"Its default is {part.default}.") from None


def _unknown(where: str, name: str, known: list[str]) -> PackError:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
    return PackError(f"{where} has no parameter {name} ({hint}).", "Leave it out, or correct it.")


def _not_given(where: str, names: Sequence[str]) -> PackError:
    asked = " ".join(f"--param {name}=…" for name in names)
    what = f"{Path(where).name} leaves {' and '.join(names)} open."
    return PackError(what, f"Say what is meant: {asked}.")
