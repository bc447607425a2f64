"""An endpoint that begins with the words of a built-in pack's, and says only what differs.

Several sources speak one protocol, such as OAI-PMH. What they have in common stands in one file.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from patra_ingest.errors import PackError
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack_file import read_pack_file
from patra_ingest.registry.parameters import Key, Scalar, read_filling
from patra_ingest.spec.words import Name, Word


class UsePart(Word):
    """A built-in pack's endpoint; what the endpoint says itself is laid over it, word by word."""

    pack: Name = Field(description="Name of the built-in pack.")
    endpoint: Name | None = Field(None, description="Its endpoint; none: the first.")
    parameters: dict[Key, Scalar] = Field({}, description="Values for what that pack leaves open.")


def with_presets(where: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pack in which every `use` has become the words that it stands for."""
    endpoints = value.get("endpoints")
    if not isinstance(endpoints, dict):
        return dict(value)
    written = {name: _endpoint(f"{where}: {name}", said) for name, said in endpoints.items()}
    return {**value, "endpoints": written}


def _endpoint(where: str, said: Any) -> Any:
    if not isinstance(said, dict) or "use" not in said:
        return said
    try:
        use = UsePart.model_validate(said["use"])
    except ValidationError:
        return said  # it is told with all other mistakes of the file
    own = {key: value for key, value in said.items() if key != "use"}
    return _laid_over(_preset(where, use), own)


def _preset(where: str, use: UsePart) -> dict[str, Any]:
    path = FOLDER / f"{use.pack}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.yaml")))
        raise PackError(f"{where} uses {use.pack}, which is no built-in pack.", f"Known: {known}.")
    text = read_pack_file(path)
    endpoints = text.value["endpoints"]
    name = use.endpoint or next(iter(endpoints))
    if name not in endpoints or "use" in endpoints[name]:
        whole = [each for each, said in endpoints.items() if "use" not in said]
        raise PackError(
            f"{where} uses {use.pack}/{name}, which is no endpoint with words of its own.",
            f"Known: {', '.join(whole)}.",
        )
    preset: dict[str, Any] = read_filling(text, use.parameters).fill(
        endpoints[name], ("endpoints", name)
    )
    return preset


def _laid_over(base: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Lay mappings over mappings; anything else replaces what was there, and null takes it away."""
    both = dict(base)
    for key, value in own.items():
        below = both.get(key)
        if value is None:
            both.pop(key, None)
        elif isinstance(value, dict) and isinstance(below, dict):
            both[key] = _laid_over(below, value)
        else:
            both[key] = value
    return both
