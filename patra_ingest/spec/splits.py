"""The second dimension: how a window that is still too large at its floor is cut further.

Each part becomes one clause of the request, which names it `${split}`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from patra_ingest.spec.words import Text, Word


class NumberSplit(Word):
    """A range of numbers that is halved, such as PubMed's `1:30000000[UID]`."""

    by: Literal["NUMBER"]
    clause: str = Field(description="Template with ${from} and ${to}, both inclusive.")
    lowest: int
    highest: int

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.lowest >= self.highest:
            raise ValueError("lowest is not below highest")
        return self


class ValueSplit(Word):
    """A closed list of values that together are everything, such as fiscal years or corpora."""

    by: Literal["VALUE"]
    clause: str = Field(description="Template with ${value}.")
    values: tuple[Text, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _are_told_apart(self) -> Self:
        if len(set(self.values)) < len(self.values):
            raise ValueError("a value is there twice")
        return self


class PrefixSplit(Word):
    """Prefixes of a key, letter by letter, such as DOIs by their suffix."""

    by: Literal["PREFIX"]
    clause: str = Field(description="Template with ${value}.")
    alphabet: str = Field(min_length=2)
    depth: Annotated[int, Field(ge=1, le=4)] = 1

    @model_validator(mode="after")
    def _are_told_apart(self) -> Self:
        if len(set(self.alphabet)) < len(self.alphabet):
            raise ValueError("a letter is there twice")
        return self


Split = Annotated[NumberSplit | ValueSplit | PrefixSplit, Field(discriminator="by")]

# What the clause of each kind may speak of.
SPLIT_NAMES = {"NUMBER": frozenset({"from", "to"}), "VALUE": frozenset({"value"})}
SPLIT_NAMES["PREFIX"] = SPLIT_NAMES["VALUE"]
