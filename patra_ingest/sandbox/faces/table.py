"""All faces by the first part of their path."""

from collections.abc import Mapping

from patra_ingest.sandbox.answers import Answer
from patra_ingest.sandbox.faces import (
    arxiv,
    biorxiv,
    ctgov,
    datacite,
    doaj,
    epmc,
    hal,
    oai,
    openfda,
    pubmed,
    s2,
)
from patra_ingest.sandbox.faces.stage import Ask, BadAsk, Face, Stage, answer_json

FACES: Mapping[str, Face] = {
    "arxiv": arxiv.FACE,
    "biorxiv": biorxiv.FACE,
    "ctgov": ctgov.FACE,
    "datacite": datacite.FACE,
    "doaj": doaj.FACE,
    "epmc": epmc.FACE,
    "hal": hal.FACE,
    "oai": oai.FACE,
    "openfda": openfda.FACE,
    "pubmed": pubmed.FACE,
    "s2": s2.FACE,
    "zenodo": oai.ZENODO,
}


def find_face(path: str) -> tuple[str, str]:
    """Return the name of the face and the rest of a path; an empty name if there is none."""
    name, slash, rest = path.removeprefix("/").partition("/")
    return (name, slash + rest) if name in FACES else ("", path)


def answer_face(name: str, stage: Stage, ask: Ask) -> Answer:
    """Let a face answer; what it cannot read is a 400 that says why."""
    try:
        return FACES[name].answer(stage, ask)
    except BadAsk as error:
        return answer_json({"error": str(error)}, status=400)
