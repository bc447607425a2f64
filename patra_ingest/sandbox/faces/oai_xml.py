"""How an OAI-PMH answer is written: plainly, or as oddly as XML allows (21). Pure."""

from xml.sax.saxutils import escape

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces.stage import title_of
from patra_ingest.sandbox.habits.stamps import Entry
from patra_ingest.sandbox.habits.table import Habits
from patra_ingest.sandbox.notation import iso_second

_OAI = "http://www.openarchives.org/OAI/2.0/"
_DC = "http://purl.org/dc/elements/1.1/"
_OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
_TYPE = "text/xml; charset=UTF-8"
_ENTITIES = 2_000  # more than cautious parsers expand
_NOW = "2025-01-01T00:00:00Z"

Listed = tuple[str, int, str | None]  # the end that is served, the size of the list, the token


def write_error(habits: Habits, code: str, text: str, until: str = "") -> Answer:
    """Return an error, which comes with status 200."""
    prefix = _prefix(habits)
    return _answer(habits, f'<{prefix}error code="{code}">{text}</{prefix}error>', until, "")


def write_records(
    habits: Habits, named: list[tuple[str, Entry]], listed: Listed, page: str
) -> Answer:
    """Return a page of records, and the token of the next one; an empty one ends the list."""
    until, size, token = listed
    p = _prefix(habits)
    records = "".join(_record(habits, name, entry) for name, entry in named)
    if token is not None or size > len(named):
        attribute = f' completeListSize="{size}"'
        records += f"<{p}resumptionToken{attribute}>{token or ''}</{p}resumptionToken>"
    return _answer(habits, f"<{p}ListRecords>{records}</{p}ListRecords>", until, page)


def _prefix(habits: Habits) -> str:
    return "ns0.-x:" if "odd-xml" in habits else ""


def _answer(habits: Habits, inside: str, until: str, page: str) -> Answer:
    p = _prefix(habits)
    bound = f":{p[:-1]}" if p else ""
    echo = f' until="{until}"' if until else ""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{p}OAI-PMH xmlns{bound}="{_OAI}">'
        f"<{p}responseDate>{_NOW}</{p}responseDate>"
        f'<{p}request verb="ListRecords"{echo}>http://sandbox.example/oai</{p}request>'
        f"{inside}</{p}OAI-PMH>"
    )
    return Answer(200, _TYPE, body.encode(), page=page)


def _record(habits: Habits, name: str, entry: Entry) -> str:
    p = _prefix(habits)
    status = ' status="deleted"' if entry.deleted else ""
    header = (
        f"<{p}header{status}><{p}identifier>{name}</{p}identifier>"
        f"<{p}datestamp>{iso_second(entry.second)}</{p}datestamp></{p}header>"
    )
    metadata = "" if entry.deleted else f"<{p}metadata>{_metadata(habits, entry)}</{p}metadata>"
    return f"<{p}record>{header}{metadata}</{p}record>"


def _metadata(habits: Habits, entry: Entry) -> str:
    title = escape(title_of(entry))
    if "odd-xml" not in habits:
        return (
            f'<oai_dc:dc xmlns:oai_dc="{_OAI_DC}" xmlns:dc="{_DC}"><dc:title>{title}</dc:title>'
            f"<dc:type>{entry.version}</dc:type></oai_dc:dc>"
        )
    # Mixed content, a CDATA section, a comment in the middle, and one paper made of entities.
    mixed = title.replace("H2O", "H<sub>2</sub><!-- water --><![CDATA[O]]>")
    many = "&#x26;" * (_ENTITIES if entry.index % 50 == 0 else 1)
    return (
        f'<a:dc xmlns:a="{_OAI_DC}"><title xmlns="{_DC}">{mixed}</title>'
        f'<b:type xmlns:b="{_DC}">{entry.version}</b:type>'
        f'<c:description xmlns:c="{_DC}">{many}</c:description></a:dc>'
    )
