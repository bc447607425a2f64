"""Who we say we are: from the settings to the wire, and one sentence for whoever hides."""

import logging

import pytest
from pydantic import ValidationError

from patra_ingest.executor import exchange
from patra_ingest.settings import Settings
from patra_ingest.wiring import user_agent
from patra_ingest_tests.builders import a_pack, a_trigger, an_endpoint, day
from patra_ingest_tests.fakes import upstream

EMPTY = (200, {"total": 0, "items": []})
WHO = {"mailto": "${identity.contact}", "tool": "${identity.tool}"}


def asked(home, source):
    """Harvest one page and return what the source was asked."""
    works = an_endpoint()
    works["request"]["query"] |= WHO
    home.apply(a_pack(source.url, works=works))
    home.plan(a_trigger(start=day(0), end=day(1)))
    home.work()
    return source.asked[0]


@pytest.mark.parametrize(
    "contact",
    [
        *("you@example.org", "someone@example.com", "me@mail.example", "a@b.test", "a@x.invalid"),
        *("me@your-domain.com", "me@yourdomain.org", "you@university.edu", "me@localhost"),
        *("nobody", "a b@c.org", "a@b@c.org", "<ann@uni-x.de>", "ann@uni-x.de\n"),
    ],
)
def test_an_address_that_nobody_reads_is_refused(contact):
    with pytest.raises(ValidationError, match=r"is a placeholder|is no mail address"):
        Settings(contact=contact)


@pytest.mark.parametrize("contact", ["", "ann@uni-x.de", "a.b+harvest@lib.uni-x.ac.uk"])
def test_an_address_that_somebody_may_read_is_taken(contact):
    assert Settings(contact=contact).contact == contact


@pytest.mark.parametrize("tool", ["", "two words", "a\nb", "x" * 65, "é"])
def test_a_tool_without_a_proper_name_is_refused(tool):
    with pytest.raises(ValidationError, match="is no name of a tool"):
        Settings(tool=tool)


@pytest.mark.parametrize("agent", ["a\r\nX-Evil: 1", " x", "é", "x" * 257])
def test_a_user_agent_that_is_no_header_is_refused(agent):
    with pytest.raises(ValidationError, match="is no header"):
        Settings(user_agent=agent)


def test_the_user_agent_names_tool_version_and_contact_unless_it_is_told():
    plain, named = Settings(), Settings(contact="ann@uni-x.de", tool="our-harvest")

    assert user_agent(plain).startswith("patra-ingest/")
    assert user_agent(named) == f"our-harvest {user_agent(plain)} (mailto:ann@uni-x.de)"
    assert user_agent(Settings(user_agent="Library/2 (+https://x.org)")).startswith("Library/2 (")


def test_contact_and_tool_of_the_settings_reach_the_source(home, monkeypatch):
    monkeypatch.setenv("PATRA_CONTACT", "ann@uni-x.de")
    monkeypatch.setenv("PATRA_TOOL", "our-harvest")
    with upstream(lambda _: EMPTY) as source:
        sent = asked(home, source)

    assert (sent["mailto"], sent["tool"]) == ("ann@uni-x.de", "our-harvest")


def test_a_source_that_is_not_told_whom_to_write_to_is_named_once(home, monkeypatch, caplog):
    monkeypatch.setattr(exchange, "_NAMELESS", set())
    with upstream(lambda _: EMPTY) as source, caplog.at_level(logging.WARNING):
        sent = asked(home, source)
        home.plan(a_trigger(start=day(1), end=day(2)))
        home.work()

    assert "mailto" not in sent
    assert sent["tool"] == "patra-ingest"
    said = [record.getMessage() for record in caplog.records if "PATRA_CONTACT" in record.message]
    assert said == [
        "example is not told whom to write to: PATRA_CONTACT is empty; it may serve us last."
    ]
