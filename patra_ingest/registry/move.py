"""A pack whose source stands somewhere else: at a recording, a sandbox or a mirror. Pure."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from patra_ingest.registry.forms import pack_form
from patra_ingest.registry.pack import Pack

Move = Callable[[str], str]
_WEB = ("http://", "https://")


def moved(pack: Pack, move: Move, keep_credentials: bool = True) -> Pack:
    """Return the pack with every address of its source as `move` says; otherwise the same."""
    form: dict[str, Any] = _moved(pack_form(pack), move)
    if not keep_credentials:
        form = _without_auth(form)
    if any(address.startswith("http://") for address in _addresses(form)):
        form = _allowing({"http": {}, **form})
    return Pack.model_validate(form)


def to_base(old: str, new: str) -> Move:
    """Return a move to another base address; what has one of its own goes to the same host."""
    host = "{0.scheme}://{0.netloc}".format(urlsplit(new))

    def move(address: str) -> str:
        if address.rstrip("/") == old.rstrip("/"):
            return new.rstrip("/")
        return host + urlsplit(address).path

    return move


def _moved(tree: Any, move: Move) -> Any:
    if isinstance(tree, list):
        return [_moved(one, move) for one in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: move(value) if _is_address(key, value) else _moved(value, move)
        for key, value in tree.items()
    }


def _is_address(key: str, value: Any) -> bool:
    return isinstance(value, str) and (
        key == "base_url" or (key == "path" and value.startswith(_WEB))
    )


def _addresses(tree: Any) -> list[str]:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    own = [v for k, v in tree.items() if _is_address(k, v)] if isinstance(tree, dict) else []
    return own + [address for one in inner for address in _addresses(one)]


def _allowing(tree: Any) -> Any:
    """Return the pack with plain HTTP allowed wherever it speaks of HTTP at all."""
    if not isinstance(tree, dict):
        return tree
    return {
        key: {**value, "allow_insecure_http": True}
        if key == "http" and isinstance(value, dict)
        else _allowing(value)
        for key, value in tree.items()
    }


def _without_auth(form: dict[str, Any]) -> dict[str, Any]:
    endpoints = {
        name: {key: part for key, part in endpoint.items() if key != "auth"}
        for name, endpoint in form["endpoints"].items()
    }
    return {**{key: part for key, part in form.items() if key != "auth"}, "endpoints": endpoints}
