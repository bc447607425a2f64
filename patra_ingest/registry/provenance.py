"""Who a source is: the first part of a pack, and what people need to know before they trust it."""

import re
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from patra_ingest.spec.words import Name, Word, Zone

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _day(text: str) -> str:
    """Require a day of the calendar, written as the years go on: 2026-11-01."""
    if not _DAY.fullmatch(text):
        raise ValueError("write a day, such as 2026-11-01")
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError("is no day of the calendar") from None
    return text


Day = Annotated[
    str,
    AfterValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2026-11-01"]}),
]


class EvidenceGrade(StrEnum):
    """How well what a pack says of its source is known, the best first."""

    LIVE = "LIVE"  # the source itself was read with this pack
    RECORDED = "RECORDED"  # answers that the source once gave were read with it
    DOCUMENTED = "DOCUMENTED"  # the source's own documentation, or its own code, says so
    REPORTED = "REPORTED"  # others who use the source say so
    ASSUMED = "ASSUMED"  # nobody looked


class EvidencePart(Word):
    """When the source was last looked at for this pack, and how closely."""

    date: Day = Field(description="The day of the newest look, such as 2026-11-01.")
    grade: EvidenceGrade | None = Field(
        None, description="What was looked at: the live source, recorded answers, its documents, …"
    )
    note: str | None = Field(
        None, max_length=500, description="What is less certain than the rest, in one sentence."
    )


class ProvenancePart(Word):
    """Who the source is."""

    code: Name
    name: str
    base_url: str
    timezone: Zone = "UTC"
    docs_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")] | None = None
    evidence: EvidencePart | None = Field(
        None, description="When the source was last looked at; for people only."
    )


def evidence_form(part: ProvenancePart) -> dict[str, Any] | None:
    """Return what the Registry keeps of the evidence, or None."""
    said = part.evidence
    return None if said is None else said.model_dump(mode="json", exclude_none=True)
