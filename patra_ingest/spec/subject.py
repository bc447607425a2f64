"""What the checks look at: one endpoint, merged and typed, with everything it refers to."""

from dataclasses import dataclass

from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import Operation
from patra_ingest.spec.declaration import Declaration, NamedCredential
from patra_ingest.spec.freeze import used_texts
from patra_ingest.spec.merge import Merged
from patra_ingest.spec.places import templates_of
from patra_ingest.spec.shapes import Shaped

# What a request template may speak of. `window.last` is the last instant inside the window,
# `now` the instant of asking, `split` the clause that cuts a window at its floor, `query` the text
# of the neutral query and `asked.NAME` one of the parameters that it became.
VARIABLES = frozenset(
    {"window.from", "window.to", "window.last", "page.size", "page.offset", "page.number"}
    | {"page.token", "identity.contact", "identity.tool", "query", "asked", "params"}
    | {"split", "ids", "now"}
)


@dataclass(frozen=True)
class Subject:
    """One endpoint for one operation; `detail` is the endpoint it hands its ids to."""

    declaration: Declaration
    merged: Merged
    shaped: Shaped
    params: frozenset[str] = frozenset()
    detail: "Subject | None" = None
    is_detail: bool = False  # it serves another endpoint: ids in, records out
    credentials: tuple[NamedCredential, ...] = ()  # those it may use
    partition_names: frozenset[str] = frozenset()  # also those of the search it completes

    @property
    def operation(self) -> Operation:
        """The operation this is compiled for."""
        return self.declaration.operation

    @property
    def by_ids(self) -> bool:
        """Whether it is asked for ids, not for a window."""
        return self.is_detail or self.operation == Operation.UPDATE

    def templates(self, without: str = "") -> list[str]:
        """Return every template a request is made of; `without` leaves `first` or `next` out."""
        http, request = self.shaped.http, self.shaped.request
        texts = used_texts(request.model_copy(update={without: None}) if without else request)
        texts.extend(text for text in (http.headers or {}).values() if text)
        for param in (http.query or {}).values():
            texts.extend(() if param is None else templates_of(param))
        return texts

    def uses(self, name: str, without: str = "") -> bool:
        """Return whether any template speaks of a variable, or of a part of it."""
        return any(
            used == name or used.startswith(f"{name}.")
            for text in self.templates(without)
            for used in names_in(text)
        )

    def sends_page_size(self) -> bool:
        """Return whether the source is told how many items we want."""
        return self.uses("page.size") or self.shaped.paging.size_param is not None

    def known_names(self) -> frozenset[str]:
        """Return every variable that this request's templates may use."""
        own = {f"partition.{key}" for key in self.partition_names}
        return VARIABLES | own


def names_in(text: str) -> frozenset[str]:
    """Return the variables a template speaks of; none if it cannot be read."""
    try:
        return compile_template(text).names
    except ValueError:
        return frozenset()  # reported by the check of the templates
