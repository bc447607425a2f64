"""How the rest of a slice that proved too big is cut again. Pure; the parts tile the rest exactly.

Time is cut first, down to the source's floor; then the second dimensions that its pack declares.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from patra_ingest.model.bounds import Bounds, IdSet, PageRange, SplitPart
from patra_ingest.planner.slicing import grid_of, split_evenly, target_of
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.spec.splits import NumberSplit, PrefixSplit, Split, ValueSplit

_MOST_PARTS = 64


def cut_again(rest: Bounds, total: int | None, spec: SpecSnapshot) -> list[Bounds]:
    """Return the parts of `rest`, which holds `total` records; none when nothing can be cut."""
    parts = _how_many(total, spec)
    if rest.ids is not None:
        return [replace(rest, ids=half) for half in _halves(rest.ids)]
    if rest.pages is not None:
        return [replace(rest, pages=half) for half in _page_halves(rest.pages)]
    if rest.window is not None and not rest.splits:
        windows = split_evenly(rest.window, parts, grid_of(spec.window))
        if len(windows) > 1:
            return [replace(rest, window=window) for window in windows]
    return [replace(rest, splits=splits) for splits in _splits(rest.splits, parts, spec.cap.then)]


def _how_many(total: int | None, spec: SpecSnapshot) -> int:
    target = target_of(spec)
    if total is None or target is None:
        return 2
    return min(max(2, -(-total // target)), _MOST_PARTS)


def _halves(ids: IdSet) -> list[IdSet]:
    middle = len(ids.ids) // 2
    halves = (ids.ids[:middle], ids.ids[middle:])
    return [replace(ids, ids=half) for half in halves] if middle else []


def _page_halves(pages: PageRange) -> list[PageRange]:
    if pages.past is None or pages.past - pages.first < 2:
        return []
    middle = (pages.first + pages.past) // 2
    return [PageRange(pages.first, middle), PageRange(middle, pages.past)]


def _splits(
    made: tuple[SplitPart, ...], parts: int, rules: Sequence[Split]
) -> Iterator[tuple[SplitPart, ...]]:
    """Yield finer parts of the last split that was made, else those of the next one declared."""
    if made:
        finer = list(_finer(made[-1], parts, rules[made[-1].rule]))
        if finer:
            yield from ((*made[:-1], part) for part in finer)
            return
    following = made[-1].rule + 1 if made else 0
    if following < len(rules):
        yield from ((*made, part) for part in _fresh(following, parts, rules[following]))


def _fresh(number: int, parts: int, rule: Split) -> Iterator[SplitPart]:
    match rule:
        case NumberSplit():
            yield from _ranges(SplitPart(number, rule.lowest, rule.highest), parts)
        case ValueSplit():
            yield from (SplitPart(number, value=value) for value in rule.values)
        case PrefixSplit():
            yield from (SplitPart(number, value=letter) for letter in rule.alphabet)


def _finer(part: SplitPart, parts: int, rule: Split) -> Iterator[SplitPart]:
    match rule:
        case NumberSplit() if part.low != part.high:
            yield from _ranges(part, parts)
        case PrefixSplit() if part.value is not None and len(part.value) < rule.depth:
            yield from (replace(part, value=part.value + letter) for letter in rule.alphabet)


def _ranges(part: SplitPart, parts: int) -> Iterator[SplitPart]:
    if part.low is None or part.high is None:
        raise ValueError(f"{part} is not a range of numbers")
    count = part.high - part.low + 1
    parts = min(parts, count)
    edges = [part.low + count * number // parts for number in range(parts + 1)]
    for low, past in pairwise(edges):
        yield replace(part, low=low, high=past - 1)
