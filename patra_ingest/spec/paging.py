"""How a walk over pages goes: one frozen model per kind, told apart by `type`."""

from typing import Literal

from patra_ingest.spec.places import NextPlace, Total
from patra_ingest.spec.words import (
    Consistency,
    Duration,
    SizePolicy,
    Step,
    StopRule,
    Word,
)


class _Paging(Word):
    """What every kind of paging has."""

    page_size: int
    size_policy: SizePolicy | None = None  # None: nobody has said, so a short page is no proof
    max_pages: int | None = None
    total: Total | None = None
    has_more: str | None = None
    stop: tuple[StopRule, ...]
    shrink_on: tuple[int, ...] = ()
    shrink_on_timeout: bool = False
    fetch_ahead: int | None = None
    consistency: Consistency = Consistency.UNSTABLE
    order_by: str | None = None
    order: Literal["ASC", "DESC"] | None = None

    @property
    def total_path(self) -> str | None:
        """Where the total is in the body, if it is there."""
        return self.total.path if self.total else None


class NoPaging(_Paging):
    """One request is the whole answer; a total beyond it means that the slice is too large."""

    type: Literal["NONE"] = "NONE"


class OffsetPaging(_Paging):
    """The offset grows from page to page until a stop rule holds."""

    type: Literal["OFFSET"] = "OFFSET"
    first_offset: int = 0
    step: Step = Step.PAGE_SIZE
    step_path: str | None = None


class PagePaging(_Paging):
    """The page number grows by one until a stop rule holds."""

    type: Literal["PAGE"] = "PAGE"
    first_page: int = 1


class TokenPaging(_Paging):
    """Follow the opaque token that each response hands out."""

    type: Literal["TOKEN"] = "TOKEN"
    initial_token: str | None = None
    next_token: NextPlace
    token_life: Duration | None = None
    token_stays: bool = False
    keep_token: bool = False
    probe_tail: bool = False


class UrlPaging(_Paging):
    """Follow the address that each response hands out, with our own identity on it."""

    type: Literal["URL"] = "URL"
    next_url: NextPlace
    url_hosts: tuple[str, ...] = ()
    restore_params: bool = True
    token_life: Duration | None = None
    probe_tail: bool = False


class TimePaging(_Paging):
    """The next page starts at the update time of the last item."""

    type: Literal["TIME"] = "TIME"


Paging = NoPaging | OffsetPaging | PagePaging | TokenPaging | UrlPaging | TimePaging
