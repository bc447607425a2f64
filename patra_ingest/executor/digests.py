"""What the ledger keeps of a request and of its answer: enough to know them again. Pure."""

from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

from patra_ingest.transport.messages import Request, Response


def request_digest(request: Request) -> dict[str, Any]:
    """Return what the ledger keeps of a request, without secrets."""
    body = {"bodyHash": f"sha256:{sha256(request.body).hexdigest()}"} if request.body else {}
    place, _, query = request.shown_url.partition("?")
    return {
        "method": request.method,
        "url": request.shown_url,
        "urlTemplate": place,
        "query": dict(parse_qsl(query, keep_blank_values=True)),
        "headers": request.shown_headers,
        **body,
    }


def response_digest(response: Response, storage_key: str) -> dict[str, Any]:
    """Return what the ledger keeps of a response; its body is in the raw store."""
    headers = response.headers
    hints = {
        "retryAfter": headers.get("retry-after"),
        "rateLimitRemaining": headers.get("x-ratelimit-remaining"),
    }
    return {
        "status": response.status,
        "contentType": headers.get("content-type"),
        "bytes": len(response.body),
        "body": storage_key,
        "sample": f"sha256:{storage_key.rpartition('/')[2].partition('.')[0]}",
        "headerHints": hints,
        "receivedAt": response.received_at,
    }
