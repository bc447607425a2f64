"""The pack language: one YAML file describes one provenance.

The parts are those of `spec`; here they are put together to a file. A part that an endpoint says
replaces the source's own part whole, and one that an operation says replaces the endpoint's: just
as the Registry chooses one row per dimension.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from patra_ingest.errors import PackError, PersonMustAct
from patra_ingest.expr.query_rules import QueryBook
from patra_ingest.model.codes import EndpointUsage, Operation
from patra_ingest.model.records import ChangeRule
from patra_ingest.registry.code_book import CodeBook, builtin_code_book
from patra_ingest.registry.cron import Cron
from patra_ingest.registry.pack_file import PackText, read_pack_file
from patra_ingest.registry.parameters import Key, ParameterPart, Scalar, filled
from patra_ingest.registry.presets import UsePart, with_presets
from patra_ingest.registry.provenance import ProvenancePart
from patra_ingest.spec import parts, policies
from patra_ingest.spec.places import ErrorRule, FieldSpec
from patra_ingest.spec.planning import PlanningPart
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.secrets import (
    find_secrets_in_cap,
    find_secrets_in_credential,
    find_secrets_in_http,
    find_secrets_in_partitions,
    find_secrets_in_request,
)
from patra_ingest.spec.shapes import problem_of, written_steps
from patra_ingest.spec.words import (
    CODES,
    Downgrade,
    Instant,
    Name,
    Text,
    ValueText,
    Word,
    coded,
)

_LISTED = 20


def _fields(said: Any) -> Any:
    """Read `title: $.title` and `title: {path: …, required: true}` as a list of fields."""
    if not isinstance(said, dict):
        return said
    return tuple(
        {"name": name, **(field if isinstance(field, dict) else {"path": field})}
        for name, field in said.items()
    )


def _operations(said: Any) -> Any:
    """Read `[HARVEST, UPDATE]` as operations without words of their own."""
    if isinstance(said, list | tuple):
        return {name: {} for name in said}
    return {k: v or {} for k, v in said.items()} if isinstance(said, dict) else said


def _schedules(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    return {name: {"cron": cron} if isinstance(cron, str) else cron for name, cron in said.items()}


class FieldWords(Word):
    """One field in full; its name is the key it stands under."""

    path: ValueText
    required: bool = False
    one_of: tuple[str | int, ...] | None = Field(
        None, description="The only values it may have; another one puts the item in quarantine."
    )


def _told_apart(fields: tuple[FieldSpec, ...]) -> tuple[FieldSpec, ...]:
    names = [field.name for field in fields]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} is there twice; give each field its own name")
    return fields


Fields = Annotated[
    tuple[FieldSpec, ...],
    AfterValidator(_told_apart),
    BeforeValidator(_fields, json_schema_input_type=dict[str, ValueText | FieldWords | None]),
]
_Operation = Annotated[Operation, coded("ing_operation")]


class SchedulePart(Word):
    """When an endpoint is asked without a person asking."""

    cron: Cron = Field(description="Five fields, UTC.")
    enabled: bool = True


class Dimensions(Word):
    """What may be said for a whole source, for one endpoint, or for one operation of it."""

    http: policies.HttpPart | None = None
    paging: parts.PagingPart | None = None
    window: parts.WindowPart | None = None
    batching: policies.BatchingPart | None = None
    retry: policies.RetryPart | None = None
    rate: policies.RatePart | None = None
    planning: PlanningPart | None = None


class OperationPart(Dimensions):
    """What one operation of an endpoint does differently."""

    request: parts.RequestPart | None = None


def _or_used(schema: dict[str, Any]) -> None:
    """Let an editor know that `use` brings what an endpoint needs."""
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["use"]}]


class EndpointPart(Dimensions):
    """One callable of the source."""

    model_config = ConfigDict(json_schema_extra=_or_used)

    use: UsePart | None = Field(None, description="A built-in pack's endpoint to begin with.")
    usage: Annotated[EndpointUsage, coded("endpoint_usage")] = EndpointUsage.SEARCH
    operations: Annotated[
        dict[_Operation, OperationPart],
        BeforeValidator(
            _operations,
            json_schema_input_type=list[Operation] | dict[Operation, OperationPart | None],
        ),
    ] = Field({})
    request: parts.RequestPart
    names: parts.ParamNames | None = None
    auth: policies.AuthPart | None = None
    cap: parts.CapPart | None = None
    response: parts.ResponsePart
    fields: Fields | None = None
    changed: ChangeRule | None = None
    errors: tuple[ErrorRule, ...] | None = None
    detail: parts.DetailPart | None = None
    refreshes: tuple[Name, ...] | None = Field(
        None, description="Searches whose records a DETAIL refreshes, beside those that name it."
    )
    partitions: dict[Name, dict[str, Text | None]] | None = None
    query: dict[str, Any] | None = Field(None, description="A neutral query, always asked.")
    intended: tuple[Downgrade, ...] | None = Field(None, description="Warnings that are meant.")
    schedule: Annotated[
        dict[_Operation, SchedulePart],
        BeforeValidator(_schedules, json_schema_input_type=dict[Operation, str | SchedulePart]),
    ] = Field({})

    @model_validator(mode="after")
    def _default_operations(self) -> Self:
        # A search can bring what is new and what is past; what else there is must be said.
        if not self.operations and self.usage == EndpointUsage.SEARCH:
            both = {Operation.HARVEST: OperationPart(), Operation.BACKFILL: OperationPart()}
            object.__setattr__(self, "operations", both)
        return self

    @model_validator(mode="after")
    def _schedules_what_it_does(self) -> Self:
        if others := [each.value for each in self.schedule if each not in self.operations]:
            raise ValueError(f"schedule: {', '.join(others)} is not among the operations")
        return self


class Pack(Dimensions):
    """One source, whole."""

    parameters: dict[Key, ParameterPart] = Field(
        {}, description="By name, what the file leaves open until it is applied."
    )
    effective_from: Instant | None = Field(
        None, description="When the change takes effect; absent = when it is applied."
    )
    provenance: ProvenancePart
    auth: policies.AuthPart | None = None
    expressions: QueryBook | None = None
    operations: dict[_Operation, Dimensions] = Field(
        {}, description="What one operation does differently, at every endpoint."
    )
    endpoints: dict[Name, EndpointPart] = Field(min_length=1)


def read_pack(
    path: Path, codes: CodeBook | None = None, given: Mapping[str, Scalar] | None = None
) -> Pack:
    """Read and check one pack file; PackError says what is wrong, where, and the remedy."""
    return parse_pack(read_pack_file(path), codes, given)


def parse_pack(
    text: PackText, codes: CodeBook | None = None, given: Mapping[str, Scalar] | None = None
) -> Pack:
    """Check the content of one pack, with what it leaves open filled in."""
    find = (codes or builtin_code_book()).canonical
    try:
        value = with_presets(text.where, filled(text, given or {}))
        pack = Pack.model_validate(value, context={CODES: _as_value_error(find)})
    except ValidationError as error:
        found: dict[str, str] = {}
        for detail in error.errors(include_url=False):
            place = ".".join(str(step) for step in written_steps(detail["loc"]))
            found.setdefault(place, _at_line(text, detail))
        raise _refusal(text.where, list(found.values())) from error
    written = [str(problem) for problem in _written_secrets(pack)]
    if written:
        raise _refusal(text.where, written)
    return pack


def _refusal(where: str, problems: list[str]) -> PackError:
    listed = "; ".join(problems[:_LISTED])
    more = len(problems) - _LISTED
    rest = f"; and {more} more" if more > 0 else ""
    return PackError(f"{where} does not fit the pack language: {listed}{rest}.", "Correct it.")


def _at_line(text: PackText, detail: Any) -> str:
    problem = problem_of(detail, "", _part_at(written_steps(detail["loc"])))
    line = text.line_of(written_steps(detail["loc"]))
    return f"line {line}: {problem}" if line else str(problem)


def _part_at(location: list[str | int]) -> type[Word]:
    if len(location) == 1:
        return Pack
    return EndpointPart if location[0] == "endpoints" and len(location) == 3 else Word


def _written_secrets(pack: Pack) -> Iterator[Problem]:
    address = parts.RequestPart(base_url=pack.provenance.base_url)
    for problem in find_secrets_in_request(address):
        yield Problem("provenance.base_url", problem.reason, problem.remedy)
    for where, part in _spoken(pack):
        found = [*find_secrets_in_http(part.http or policies.HttpPart())]
        if isinstance(part, EndpointPart | OperationPart) and part.request:
            found += find_secrets_in_request(part.request)
        if isinstance(part, EndpointPart):
            found += find_secrets_in_cap(part.cap or parts.CapPart())
            found += find_secrets_in_partitions(part.partitions)
        for problem in found:
            place = where + problem.path.removeprefix("endpoint.")
            yield Problem(place, problem.reason, problem.remedy)
    yield from _unlocked_secrets("", pack.auth)
    for name, endpoint in pack.endpoints.items():
        yield from _unlocked_secrets(f"endpoints.{name}.", endpoint.auth)


def _unlocked_secrets(where: str, auth: policies.AuthPart | None) -> Iterator[Problem]:
    for name, credential in ((auth and auth.credentials) or {}).items():
        yield from find_secrets_in_credential(f"{where}auth.credentials.{name}", credential)


def _spoken(pack: Pack) -> Iterator[tuple[str, Dimensions]]:
    yield "", pack
    for operation, own in pack.operations.items():
        yield f"operations.{operation}.", own
    for name, endpoint in pack.endpoints.items():
        yield f"endpoints.{name}.", endpoint
        for operation, own in endpoint.operations.items():
            yield f"endpoints.{name}.operations.{operation}.", own


def _as_value_error(find: Callable[[str, str], str]) -> Callable[[str, str], str]:
    def canonical(type_code: str, code: str) -> str:
        try:
            return find(type_code, code)
        except PersonMustAct as error:
            raise ValueError(str(error)) from error

    return canonical
