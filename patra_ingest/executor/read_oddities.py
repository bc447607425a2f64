"""What an author should look at although nothing failed: held against what was read. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

import orjson

from patra_ingest.executor.read_some import SliceRead
from patra_ingest.model.records import NewRecord
from patra_ingest.spec.localize import query_window
from patra_ingest.spec.words import SizePolicy

_ENOUGH = 5  # records before anybody wonders why a field is always empty
_TELLING = ("x-ratelimit", "x-rate-limit", "ratelimit")


def records_of(reads: Sequence[SliceRead]) -> Iterator[NewRecord]:
    """Yield every record that was read."""
    for read in reads:
        for page in read.pages:
            yield from page.turned.mapped.records


def find_oddities(reads: Sequence[SliceRead], is_recorded: bool = False) -> list[str]:
    """Return what an author should look at although nothing failed.

    A recording was made for another window and another size of page than are asked for now.
    """
    looks = [_empty_fields, _repeated, _untold_limits]
    if not is_recorded:
        looks += [_outside, _short_pages]
    return [sentence for look in looks for sentence in look(reads)]


def _empty_fields(reads: Sequence[SliceRead]) -> Iterator[str]:
    filled: Counter[str] = Counter()
    names: dict[str, None] = {}
    count = 0
    for record in records_of(reads):
        if record.is_deleted:
            continue
        count += 1
        for name, value in orjson.loads(record.fields_json).items():
            names[name] = None
            filled[name] += value not in (None, "", [])
    if count < _ENOUGH:
        return
    for name in names:
        if not filled[name]:
            yield f"the field {name} is empty in all {count} records: is its path right?"


def _outside(reads: Sequence[SliceRead]) -> Iterator[str]:
    """Hold update times against the window asked for, where the source filters by them."""
    strange = total = 0
    for read in reads:
        spec, window = read.work.plan.spec, read.work.bounds.window
        if window is None or spec.response.updated_at is None or spec.detail is not None:
            continue
        asked = query_window(spec.window, window, read.work.lookback)
        times = [one.source_updated_at for one in records_of([read]) if one.source_updated_at]
        total += len(times)
        strange += sum(not asked.start <= at <= asked.end for at in times)
    if strange:
        yield (
            f"{strange} of {total} records say an update time outside the window that was asked"
            " for: does the request filter by the date that response.updated_at reads?"
        )


def _short_pages(reads: Sequence[SliceRead]) -> Iterator[str]:
    for read in reads:
        paging = read.work.plan.spec.paging
        if paging.size_policy is SizePolicy.SERVER:
            continue
        for page in read.pages:
            numbers, size = page.turned.numbers, paging.page_size
            is_search = page.turned.numbers.get("phase") != "DETAIL" and "askedCount" not in numbers
            if is_search and numbers["hasNext"] and 0 < numbers["listed"] < size:
                yield (
                    f"a page that is not the last brought {numbers['listed']} items where {size}"
                    " were asked for: does the source clamp the size (paging.size_policy)?"
                )
                return


def _repeated(reads: Sequence[SliceRead]) -> Iterator[str]:
    for read in reads:
        ids = Counter(one.provider_id for one in records_of([read]))
        twice = [one for one, times in ids.items() if times > 1]
        if twice:
            yield f"{len(twice)} ids came more than once in one slice, such as {twice[0]:.60}"


def _untold_limits(reads: Sequence[SliceRead]) -> Iterator[str]:
    for read in reads:
        if read.work.plan.spec.rate.headers is not None:
            continue
        names = {
            name.lower()
            for page in read.pages
            for one in page.exchanges
            for name in one.response.headers
            if name.lower().startswith(_TELLING)
        }
        if names:
            listed = ", ".join(sorted(names))
            yield f"the source tells its limits in {listed}: declare them in rate.headers"
            return
