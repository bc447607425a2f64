"""The parts of a declaration: what one endpoint may say. Everything is optional.

A key that is not said is inherited: from the source, then from the platform (`merge.PLATFORM`).
The same models check a pack file, a Registry row and a trigger's `--set`.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from patra_ingest.model.codes import (
    CalendarAlign,
    EndpointUsage,
    HttpMethod,
    TimeUnit,
    UpperBound,
    WatermarkSource,
    WindowMode,
)
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.places import (
    ErrorRule,
    Expectation,
    FieldSpec,
    Freshness,
    Moment,
    NextPlace,
    Params,
    Select,
    Total,
    When,
)
from patra_ingest.spec.splits import Split
from patra_ingest.spec.words import (
    BodyFormat,
    Consistency,
    Downgrade,
    Duration,
    HttpStatus,
    Instant,
    Meaning,
    MissingIds,
    Name,
    PagingType,
    Period,
    Positive,
    SizePolicy,
    Step,
    StopRule,
    Text,
    ValueText,
    Word,
    Zone,
    coded,
)

_PAGING_NAMES = {"PAGE_NUMBER": "PAGE", "CURSOR": "TOKEN", "SCROLL": "TOKEN"}


def _paging_type(value: Any) -> Any:
    return _PAGING_NAMES.get(value.strip().upper(), value) if isinstance(value, str) else value


def _short(kind: type[Word]) -> BeforeValidator:
    """Let a place be written short: the path alone."""
    return BeforeValidator(
        lambda said: {"path": said} if isinstance(said, str) else said,
        json_schema_input_type=str | kind,
    )


class RequestPart(Word):
    """What is asked: `${…}` templates in path, query, headers, form or JSON body."""

    base_url: str | None = Field(None, description="Wins over the source's own.")
    method: Annotated[HttpMethod, coded("http_method")] | None = None
    path: str | None = Field(
        None,
        description="Behind the base address; '' is that itself, https://… another; a template.",
    )
    query: Params | None = Field(None, description="Sent with every page.")
    first: Params | None = Field(None, description="Sent with the first page only.")
    next: Params | None = Field(None, description="Sent with later pages only.")
    headers: dict[str, Text | None] | None = None
    form: Params | None = Field(None, description="Form body.")
    body: dict[str, Any] | None = Field(None, description="JSON body; its texts are templates.")
    select: Select | None = Field(None, description="The fields the source is asked to send.")
    accept: str | None = Field(None, description="Accept header.")
    post_when_longer: Positive | None = Field(
        None, description="Send a GET as a POST form when its URL is longer than this."
    )
    post_path: str | None = Field(
        None, description="Where that form goes, if the source takes none at `path`; no template."
    )


class ParamNames(Word):
    """The endpoint's own names for what every walk sends; they win over those of `paging`."""

    size: str | None = None
    offset: str | None = None
    page: str | None = None
    token: str | None = None
    ids: str | None = None


class PagingPart(Word):
    """How the endpoint pages and what ends it."""

    type: Annotated[PagingType, BeforeValidator(_paging_type)] | None = None
    page_size: Positive | None = None
    max_page_size: Positive | None = Field(None, description="The most the source serves at once.")
    size_policy: SizePolicy | None = None
    max_pages: Positive | None = None
    size_param: str | None = Field(None, description="Carries ${page.size}.")
    offset_param: str | None = Field(None, description="Carries ${page.offset}.")
    page_param: str | None = Field(None, description="Carries ${page.number}.")
    token_param: str | None = Field(None, description="Carries ${page.token}.")
    first_page: Literal[0, 1] | None = Field(None, description="For PAGE: what page 1 is called.")
    first_offset: Literal[0, 1] | None = None
    step: Step | None = None
    step_path: str | None = None
    initial_token: Text | None = None
    next_token: Annotated[NextPlace, _short(NextPlace)] | None = None
    next_url: Annotated[NextPlace, _short(NextPlace)] | None = None
    url_hosts: tuple[str, ...] | None = Field(None, description="Other hosts a next URL may name.")
    restore_params: bool | None = Field(
        None, description="Give a next URL back those of our parameters that it has lost."
    )
    fetch_ahead: Positive | None = Field(
        None, description="Pages asked for before the last one is stored, for tokens that die soon."
    )
    token_life: Period | None = Field(None, description="An older token is not resumed.")
    token_stays: bool | None = Field(
        None, description="One token serves all pages of a walk; only their ids tell that it moves."
    )
    keep_token: bool | None = Field(
        None, description="Keep the newest token as a cursor, beside the one of the window."
    )
    probe_tail: bool | None = Field(
        None, description="Ask once more for a page that hands out no next one before it is last."
    )
    total: Annotated[Total, _short(Total)] | None = None
    has_more: str | None = None
    stop: tuple[StopRule, ...] | None = None
    shrink_on: tuple[HttpStatus, ...] | None = Field(
        None, description="Statuses after which the page is asked for at half its size."
    )
    shrink_on_timeout: bool | None = Field(
        None, description="Ask for half a page after a timeout, too."
    )
    consistency: Consistency | None = None
    order_by: str | None = None
    order: Literal["ASC", "DESC"] | None = Field(None, description="Declared order of the items.")


class WindowPart(Word):
    """How the endpoint filters by time and what its cursor measures."""

    watermark_key: str | None = None
    meaning: Meaning | None = Field(None, description="What the filtered date says of a record.")
    watermark_source: Annotated[WatermarkSource, coded("watermark_source")] | None = None
    server_date: Annotated[Moment, _short(Moment)] | None = None
    release: Annotated[Moment, _short(Moment)] | None = None
    freshness: Freshness | None = None
    safety_lag: Duration | None = None
    publication_delay: Duration | None = Field(
        None, description="How late records appear in the filter; the lag is never shorter."
    )
    overlap: Duration | None = Field(None, description="Widens the question, never the slice.")
    lookback: Duration | None = None
    max_span: Duration | None = None
    min_span: Duration | None = Field(None, description="The floor: never cut finer.")
    mode: Annotated[WindowMode, coded("window_mode")] | None = None
    align: Annotated[CalendarAlign, coded("calendar_align")] | None = None
    granularity: Annotated[TimeUnit, coded("time_unit")] | None = None
    format: str | None = Field(None, description="How bare ${window.from} is written.")
    zone: Zone | None = None
    lower_bound: Literal["INCLUSIVE", "EXCLUSIVE"] | None = None
    upper_bound: Annotated[UpperBound, coded("upper_bound")] | None = None
    initial_from: Instant | None = None


class Probe(Word):
    """A cheap request that only counts: what it sends differently, and where its total is."""

    query: Params | None = Field(None, description="Parameters that differ.")
    form: Params | None = Field(None, description="Form values that differ.")
    body: dict[str, Any] | None = Field(None, description="Values of the JSON body that differ.")
    total: str | None = None


class CapPart(Word):
    """How many results one question can ever give, and how a larger one is cut."""

    max: Positive | None = None
    probe: Probe | None = None
    then: tuple[Split, ...] | None = Field(
        None, description="How a window at its floor is cut further."
    )


class ResponsePart(Word):
    """Where things are in a response and what must be there."""

    format: BodyFormat | None = None
    namespaces: dict[str, str] | None = Field(None, description="XML: prefix in paths = URI.")
    items: ValueText | None = None
    items_order: str | None = Field(None, description="For items keyed by id: path of the ids.")
    single: bool | None = Field(None, description="The answer at `items` is one item, no list.")
    grouped: bool | None = Field(
        None,
        description="All that is at `items` is one item, of the one id that was asked for:"
        " `$.asked` and the list `$.items`.",
    )
    asked: ValueText | None = Field(
        None, description="Which of the ids that were asked for an item answers, if not its own."
    )
    null_is_empty: bool | None = None
    id: ValueText | None = None
    version: ValueText | None = None
    updated_at: ValueText | None = None
    deleted: str | When | None = None
    tombstones: str | None = Field(None, description="Path of ids that were deleted.")
    retracted: When | None = None
    skip: When | None = None
    usable: When | None = Field(None, description="Else the item is hollow and asked for later.")
    require: tuple[str, ...] | None = Field(None, description="Paths every answer has.")
    expect: tuple[Expectation, ...] | None = None
    default_fields: tuple[str, ...] | None = Field(
        None, description="All that the source sends when no fields are selected."
    )
    client_window: bool | None = Field(
        None, description="The filter is coarser than a slice: we drop the rest."
    )


class DetailPart(Word):
    """The endpoint that turns the ids found here into records."""

    endpoint: Name | None = None
    batch: Positive | None = None
    missing: MissingIds | None = None
    positional: bool | None = Field(None, description="Nulls stand in the place of lost ids.")
    aliases: bool | None = Field(None, description="Another id than asked for is a merge.")
    isolate: bool | None = Field(None, description="Halve a batch until the bad id is alone.")


class EndpointWords(Word):
    """What an endpoint says of itself outside the groups."""

    usage: Annotated[EndpointUsage, coded("endpoint_usage")] | None = None
    fields: tuple[FieldSpec, ...] | None = None
    changed: ChangeRule | None = None
    errors: tuple[ErrorRule, ...] | None = None
    refreshes: tuple[Name, ...] | None = None
    partitions: dict[Name, dict[str, Text | None]] | None = None
    query: dict[str, Any] | None = Field(None, description="A neutral query, always asked.")
    intended: tuple[Downgrade, ...] | None = Field(None, description="Warnings that are meant.")
