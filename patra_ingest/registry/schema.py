"""The pack language as JSON Schema, so that editors complete a pack and check it while it grows.

The file beside the packs is generated from the models: `patra registry schema > FILE`.
"""

from typing import Any

import orjson

from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import Pack

FILE = FOLDER / "pack.schema.json"


def pack_schema() -> dict[str, Any]:
    """Return the JSON Schema of a pack file."""
    schema = Pack.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Patra Ingest pack",
        "description": "One literature source, described as data.",
    }


def schema_text() -> str:
    """Return the schema as its file holds it."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(pack_schema(), option=options).decode()
