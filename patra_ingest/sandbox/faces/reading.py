"""How a raw request becomes what a face is asked. Pure."""

from urllib.parse import parse_qsl

import orjson

from patra_ingest.sandbox.faces.stage import Ask


def read_ask(host: str, path: str, query: str, body: bytes, content_type: bytes) -> Ask:
    """Return what is asked: the parameters of the query and of a form, and a JSON body."""
    params = dict(parse_qsl(query, keep_blank_values=True))
    if b"form" in content_type:
        params |= dict(parse_qsl(body.decode(), keep_blank_values=True))
    tree = None
    if b"json" in content_type:
        try:
            tree = orjson.loads(body)
        except orjson.JSONDecodeError:
            tree = None
    return Ask(host, path, params, tree)
