"""A credential as columns of `reg_prov_credential`, and back. Only references are kept."""

from typing import Any

from pydantic import TypeAdapter

from patra_ingest.ledger.db import read_json
from patra_ingest.registry.codecs import Columns, Row, as_json
from patra_ingest.spec.policies import Credential

TABLE = "reg_prov_credential"
_CREDENTIAL: TypeAdapter[Credential] = TypeAdapter(Credential)
_KEYS = {
    "field": "credential_field_name",
    "prefix": "credential_value_prefix",
    "secret": "credential_value_ref",
    "username": "basic_username_ref",
    "password": "basic_password_ref",
    "token_url": "oauth_token_url",
    "client_id": "oauth_client_id_ref",
    "client_secret": "oauth_client_secret_ref",
    "scope": "oauth_scope",
    "audience": "oauth_audience",
}


def columns(credential: Credential) -> Columns:
    """Return the columns of one credential."""
    said: dict[str, Any] = credential.model_dump(mode="json", exclude_none=True)
    rest = {
        key: value
        for key, value in said.items()
        if key not in _KEYS and key not in ("type", "location", "preferred")
    }
    return {
        "auth_type": said["type"],
        "inbound_location_code": said.get("location", "HEADER"),
        "is_default_preferred": int(said["preferred"]),
        **{column: said.get(key) for key, column in _KEYS.items()},
        "extra_json": as_json(rest) if rest else None,
    }


def credential_of(row: Row) -> Credential:
    """Return the credential that a row holds."""
    values: dict[str, Any] = {
        "type": row["auth_type"],
        "preferred": bool(row["is_default_preferred"]),
        **{key: row[column] for key, column in _KEYS.items() if row[column] is not None},
        **(read_json(row["extra_json"]) or {}),
    }
    if row["auth_type"] == "API_KEY":
        values["location"] = row["inbound_location_code"]
    return _CREDENTIAL.validate_python(values)
