"""What a look at a source showed, in plain values: for people and for scripts. Pure.

Nothing here is a secret: requests and answers are shown as the ledger would keep them.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import orjson

from patra_ingest.errors import (
    CredentialRefused,
    IngestError,
    SliceIncomplete,
    SliceTooBig,
    Throttled,
    Unreachable,
)
from patra_ingest.executor.certificate import Verdict
from patra_ingest.executor.decoding import BodyUnreadable
from patra_ingest.executor.digests import request_digest, response_digest
from patra_ingest.executor.exchange import Exchanged
from patra_ingest.executor.outcome import judge_failure
from patra_ingest.executor.read_oddities import records_of
from patra_ingest.executor.read_some import PageRead, SliceRead
from patra_ingest.model.bounds import Bounds
from patra_ingest.model.records import BadItem, NewRecord
from patra_ingest.transport.redact import redact_text

_MOST_RECORDS = 10  # of one page
_MOST_BAD = 10
_BODY_CHARS = 1024

Form = dict[str, Any]


def slice_form(read: SliceRead) -> Form:
    """Return one slice: what it asks for, its pages, and what stopped it."""
    error = read.error
    return {
        "asks": _asks(read.work.bounds),
        "partition": read.work.bounds.partition,
        "counted": read.counted,
        "pages": [page_form(page) for page in read.pages],
        "certificate": read.certificate.as_json() if read.certificate else None,
        "cutInto": read.cut_into,
        "error": None if error is None else _error_form(error, read),
        "tries": list(read.tries),
    }


def _asks(bounds: Bounds) -> str:
    if bounds.ids is not None:
        return _many(len(bounds.ids.ids), "id")
    if bounds.pages is not None:
        return f"pages {bounds.pages.first} to {bounds.pages.past or 'the last'}"
    split = "".join(f", part {part.value or f'{part.low}–{part.high}'}" for part in bounds.splits)
    return f"{bounds.window}{split}"


def _error_form(error: IngestError, read: SliceRead) -> Form:
    failure = judge_failure(error, 0, read.work.plan.window.end)
    code = error.reason if isinstance(error, SliceTooBig) else failure.code
    return {"code": code, "message": str(error), "holds": failure.halts}


def page_form(page: PageRead) -> Form:
    """Return one page: its requests, what came of them, and where the walk goes on."""
    numbers, mapped = page.turned.numbers, page.turned.mapped
    return {
        "no": page.no,
        "phase": numbers.get("phase") or ("IDS" if "askedCount" in numbers else "PAGE"),
        "position": page.position,
        "requests": [_request_form(one) for one in page.exchanges],
        "tries": list(page.tries),
        "items": numbers["listed"],
        "found": numbers.get("foundCount"),
        "asked": numbers.get("askedCount"),
        "total": numbers["total"],
        "records": len(mapped.records),
        "quarantined": len(mapped.bad),
        "outOfWindow": mapped.out_of_window,
        "skipped": mapped.skipped,
        "gone": len(page.turned.gone),
        "badIds": [{"id": one.id, "reason": one.reason} for one in page.turned.bad_ids],
        "hasNext": numbers["hasNext"],
        "stopRule": numbers["stopRule"],
        "leftOut": page.left_out,
        "sample": [record_form(one) for one in mapped.records[:_MOST_RECORDS]],
        "bad": [_bad_form(one) for one in mapped.bad[:_MOST_BAD]],
    }


def _request_form(one: Exchanged) -> Form:
    asked = request_digest(one.request)
    answer = response_digest(one.response, one.storage_key)
    body = one.request.body
    sent = one.request.hide(body[: 8 * _BODY_CHARS].decode("utf-8", "replace")) if body else None
    return {
        "method": asked["method"],
        "url": asked["url"],
        "headers": asked["headers"],
        "body": None if sent is None else redact_text(sent, _BODY_CHARS),
        "status": answer["status"],
        "contentType": answer["contentType"],
        "bytes": answer["bytes"],
        "digest": answer["sample"],
        "ms": round(one.response.elapsed * 1000),
        "waitedMs": round(one.waited_seconds * 1000),
    }


def record_form(record: NewRecord) -> Form:
    """Return a mapped record; a deletion that came as an id alone has no fields."""
    return {
        "id": record.provider_id,
        "updated": record.source_updated_at,
        "deleted": record.is_deleted,
        "fields": orjson.loads(record.fields_json) if record.fields_json else {},
    }


def _bad_form(one: BadItem) -> Form:
    return {
        "item": one.item_no,
        "id": one.provider_id,
        "path": one.path,
        "value": one.value,
        "reason": one.reason,
    }


def verdict(reads: Sequence[SliceRead], unrecorded: str | None = None) -> tuple[bool, str]:
    """Return whether the source can be read, and that in one sentence.

    `unrecorded` is for recordings: the sentence for what none of them answers, else nothing.
    """
    failed = next((read for read in reads if _is_failed(read)), None)
    if failed is not None and not _is_cut_short(failed, unrecorded):
        return False, unrecorded or _failure(failed)
    requests = sum(len(page.exchanges) for read in reads for page in read.pages)
    records = sum(1 for _ in records_of(reads))
    bad = sum(len(page.turned.mapped.bad) for read in reads for page in read.pages)
    pages = sum(read.searched for read in reads)
    if not records and not bad:
        return True, (
            f"The source answers, and has nothing here ({_many(requests, 'request')});"
            " ask for another window to see records."
        )
    brought = (
        f"{_many(pages, 'page')} in {_many(requests, 'request')} brought {_many(records, 'record')}"
    )
    aside = f", and {_many(bad, 'item')} would be quarantined" if bad else ""
    rest = "; the recordings end here" if failed else _rest(reads)
    return True, f"It works: {brought}{aside}{rest}."


def _is_failed(read: SliceRead) -> bool:
    certificate = read.certificate
    if certificate is not None and certificate.verdict is Verdict.INCOMPLETE:
        return True
    # One that is too big is cut again, and its parts are read.
    return read.error is not None and not read.cut_into


def _is_cut_short(read: SliceRead, unrecorded: str | None) -> bool:
    """Whether recordings end before the slice does, for which the pack is not to blame."""
    return unrecorded is not None and bool(read.pages) and bool(unrecorded or not read.error)


def _failure(read: SliceRead) -> str:
    error = read.error
    if error is None:
        return f"It does not add up: {read.certificate}."
    said = str(error).rstrip(".")
    match error:
        case Unreachable():
            return f"The source cannot be reached: {said}. See the network, the proxy, base_url."
        case BodyUnreadable():
            return f"The source answers something else than the pack says: {said}."
        case CredentialRefused():
            return f"The source refuses our credential: {said}."
        case Throttled():
            return f"The source cannot be asked now: {said}."
        case SliceTooBig():
            return f"The slice is too big, and cannot be cut any finer: {said}; see cap.then."
        case SliceIncomplete():
            return f"The pages do not add up: {said}."
        case _:
            return f"It does not work: {said}."


def _rest(reads: Sequence[SliceRead]) -> str:
    last = reads[-1]
    if last.certificate is not None:
        proof = last.certificate
        promised = (
            "no total is promised" if proof.promised is None else f"{proof.promised} promised"
        )
        return f"; the slice is {proof.verdict} ({promised}, {proof.landed} landed)"
    if any(page.left_out for page in last.pages):
        left = sum(page.left_out for page in last.pages)
        return f"; {_many(left, 'found id')} left unasked, this is only a look"
    return "; the slice goes on"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def table_columns(samples: Sequence[Form], most: int = 4) -> list[str]:
    """Return the fields to show beside id and update time: those that tell records apart first."""
    known = dict.fromkeys(name for record in samples for name in record["fields"])
    first = [name for name in ("doi", "title", "type", "journal", "published") if name in known]
    return list(islice(dict.fromkeys([*first, *known]), most))
