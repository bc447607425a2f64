"""A source of two phases: a search that finds ids, and an endpoint that has their records."""

from patra_ingest_tests.builders import an_endpoint, an_item
from patra_ingest_tests.pipeline.walks import a_source, ids, stamp


class Library:
    """Finds ids in pages of ten and has a record for each; what goes wrong is told to it."""

    def __init__(self, count=12, found=None):
        self.found = found or ids(count)
        self.works = {
            one: an_item(one, stamp(n)) for n, one in enumerate(dict.fromkeys(self.found))
        }
        self.poison = {}  # id → status
        self.shy = set()  # asked for once, they do not come
        self.lost = set()
        self.now = {}  # id → what it has become
        self.nulls = False
        self.deleted = []
        self.down = 0  # so many details fail
        self.details = []

    def __call__(self, asked):
        if asked["path"] == "/works":
            start = int(asked["offset"])
            return 200, {"ids": self.found[start : start + 10], "total": len(set(self.found))}
        wanted = self.wanted(asked)
        self.details.append(wanted)
        if self.down:
            self.down -= 1
            return 503, {}
        for one in wanted:
            if one in self.poison:
                return self.poison[one], {"error": "cannot"}
        hidden = self.lost | (self.shy & set(wanted)) | set(self.deleted)
        self.shy -= set(wanted)
        found = [None if one in hidden else self.record(one) for one in wanted]
        kept = found if self.nulls else [one for one in found if one]
        gone = [one for one in wanted if one in self.deleted]
        return 200, {"items": kept, "gone": gone}

    def wanted(self, asked):
        values = [value for name, value in asked["pairs"] if name == "id"]
        return values if len(values) != 1 else values[0].split(",")

    def record(self, one):
        now = self.now.get(one, one)
        return {**self.works[one], "id": now}


def a_library(url, detail=None, request=None, more=None, **fetch):
    search = an_endpoint(
        response={"items": "$.ids", "id": "$"},
        detail={"endpoint": "fetch", "batch": 4, **(detail or {})},
    )
    del search["fields"], search["changed"], search["response"]["updated_at"]
    endpoint = {
        "usage": "DETAIL",
        "request": {"path": "/fetch", "query": {"id": "${ids|join(',')}"}, **(request or {})},
        "paging": {"type": "NONE", "page_size": 100},
        "batching": {"ids_per_request": 4},
        "response": {
            "items": "$.items",
            "id": "$.id",
            "updated_at": "$.updated",
            "tombstones": "$.gone",
        },
        "changed": "NEWER_OR_HASH",
        "fields": {"title": {"path": "$.title", "required": True}},
    }
    for part, values in fetch.items():
        known = endpoint.get(part)
        endpoint[part] = {**known, **values} if isinstance(known, dict) else values
    patient = {"retry": {"max_attempts": 1, "breaker": {"failures": 50, "cooldown": "1s"}}}
    return a_source(url, more or patient, works=search, fetch=endpoint)
