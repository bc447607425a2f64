"""Which records we have."""

from sqlalchemy import Connection, text

_IDS = text("""
    SELECT provider_id FROM ing_record
     WHERE provenance_code = :provenance AND endpoint_name = :endpoint AND is_deleted = 0
""")


def list_ids(tx: Connection, provenance: str, endpoint: str) -> set[str]:
    """Return the provider ids of an endpoint's records."""
    found = tx.execute(_IDS, {"provenance": provenance, "endpoint": endpoint})
    return set(found.scalars())
