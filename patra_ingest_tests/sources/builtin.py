"""What a built-in pack asks for, word by word, and whether it keeps the common record."""

import json
from typing import Any
from urllib.parse import parse_qsl

from patra_ingest.executor.asking import Asking
from patra_ingest.executor.paging import Page
from patra_ingest.executor.request import render
from patra_ingest.model.records import NewRecord
from patra_ingest.model.window import Window
from patra_ingest.spec.common_shape import find_misfits
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest_tests.builders import NOON

CONTACT = "me@uni-x.de"


def question(
    spec: SpecSnapshot, window: Window | None, page: Page, **more: Any
) -> tuple[str, dict[str, str]]:
    """Return method and address of a request, and its parameters, in the address and in a form."""
    request = render(spec, Asking(window, page, 7, page.number, CONTACT, NOON, **more))
    address, _, params = request.full_url.partition("?")
    form = "" if request.body is None else request.body.decode()
    sent = [*parse_qsl(params, keep_blank_values=True), *parse_qsl(form, keep_blank_values=True)]
    assert len(dict(sent)) == len(sent), "a parameter is sent twice"
    return f"{request.method} {address}", dict(sent)


def fields_of(record: NewRecord) -> dict[str, Any]:
    """Return what is kept of a record, by name."""
    fields: dict[str, Any] = json.loads(record.fields_json)
    return fields


def misfits(records: list[NewRecord]) -> list[str]:
    """Return what of some records is not written as the common record has it."""
    return [said for record in records for said in find_misfits(fields_of(record))]
