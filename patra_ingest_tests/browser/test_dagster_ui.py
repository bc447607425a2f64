"""A person who knows Dagster and nothing of us: he launches, reads, follows, replays, finds a hole.

One journey over one ledger, in the order of this file. Everything that he reads is held against
the ledger and against what the sandbox says of itself.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from patra_ingest.views.records import list_ids
from patra_ingest_tests.browser.conftest import Shoot
from patra_ingest_tests.browser.pages import (
    RUN,
    button,
    dialog,
    go_to,
    launch,
    launch_button,
    number,
    open_asset,
    open_launchpad,
    read_metadata,
    read_steps,
    type_config,
    wait_until_settled,
    watch,
    zoom_out,
)
from patra_ingest_tests.browser.stage import DAYS, RECORDS, Stage

pytestmark = pytest.mark.timeout(900)

WORKS = ("records", "sandbox", "works")
HOLE = 9  # the day that nobody asks for at first
LANES = [f"execute_slice[lane_0{lane}]" for lane in (1, 2, 3)]
STEPS = ["compile_spec", "open_plan", "cut_slices", *LANES, "settle"]
FIRST_OP = "compile_spec"


def test_a_wrong_field_is_named_while_he_types_and_cannot_be_launched(
    stage: Stage, page: Page
) -> None:
    open_launchpad(page, stage.url, "ingest_job")
    type_config(page, FIRST_OP, provenance="sandbox", windw_from=stage.day(0))

    expect(page.get_by_text('unexpected config entry "windw_from"')).to_be_visible()
    expect(launch_button(page)).to_be_disabled()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param(
            {"provenance": "sandbox", "window_from": "yesterday"},
            "window_from: 'yesterday' is not an instant; write 2026-01-31 or 2026-01-31T12:00:00Z."
            " Correct it in the Launchpad.",
            id="no date",
        ),
        pytest.param(
            {"provenance": "sandbix"},
            "There is no source 'sandbix' in the Registry. Known sources: arxiv, ",
            id="no such source",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_our_words_and_there_is_no_run(
    stage: Stage, page: Page, shoot: Shoot, fields: dict[str, str], sentence: str
) -> None:
    before = stage.count_runs(), stage.ledger("SELECT COUNT(*) FROM ing_schedule_instance")
    open_launchpad(page, stage.url, "ingest_job")
    type_config(page, FIRST_OP, **fields)
    expect(page.get_by_text("No errors", exact=True)).to_be_visible()
    launch_button(page).click()

    expect(dialog(page)).to_contain_text(sentence)
    assert "File " not in dialog(page).inner_text()  # no traceback
    shoot(page, "refused")
    button(page, "OK").click()

    expect(launch_button(page)).to_be_enabled()  # still in the Launchpad, to mend it
    after = stage.count_runs(), stage.ledger("SELECT COUNT(*) FROM ing_schedule_instance")
    assert after == before


@dataclass(frozen=True)
class Launched:
    """A run that was launched in the browser, and how it ended."""

    run_id: str
    ended: str
    steps: list[str]


@pytest.fixture(scope="module")
def harvested(stage: Stage, browser: BrowserContext, shoot: Shoot) -> Iterator[Launched]:
    """The first nine days, harvested from the Launchpad."""
    page = browser.new_page()
    open_launchpad(page, stage.url, "ingest_job")
    days = {"window_from": stage.day(0), "window_to": stage.day(HOLE)}
    type_config(page, FIRST_OP, provenance="sandbox", **days)
    expect(launch_button(page)).to_be_enabled()
    shoot(page, "launchpad")
    run_id = launch(page)
    ended = watch(page)
    steps = read_steps(page, "settle")
    page.get_by_placeholder("Filter…").fill("Yielded")
    expect(page.get_by_text("records_inserted", exact=True).first).to_be_visible()
    shoot(page, "run")
    yield Launched(run_id, ended, steps)
    page.close()


def test_a_harvest_is_launched_and_watched_lane_by_lane(
    stage: Stage, page: Page, harvested: Launched
) -> None:
    assert harvested.ended == "Success"
    assert sorted(harvested.steps) == sorted(STEPS)
    assert stage.ledger("SELECT COUNT(*) FROM ing_task WHERE status_code = 'SUCCEEDED'") == HOLE

    page.goto(stage.url)
    go_to(page, "/runs")
    page.locator(f'a[href="/runs/{harvested.run_id}"]').first.click()
    button(page, "View tags and config").click()
    tags = dialog(page)
    expect(tags).to_contain_text(f"patra/plan: {stage.ledger('SELECT id FROM ing_plan')}")
    expect(tags).to_contain_text(f"[{stage.day(0)}T00:00:00Z, {stage.day(HOLE)}T00:00:00Z)")


def test_the_records_show_what_the_ledger_has_and_the_source_has(
    stage: Stage, page: Page, harvested: Launched, shoot: Shoot
) -> None:
    truth = stage.sandbox.truth(stage.instant(0), stage.instant(HOLE)).count
    open_asset(page, stage.url, *WORKS)

    told = read_metadata(page, "records_inserted")
    wait_until_settled(page)
    shoot(page, "asset")
    rows = page.get_by_text("Row count").locator("xpath=../..").inner_text()

    assert number(rows.split()[-1]) == truth == HOLE * RECORDS // DAYS
    assert truth == stage.ledger("SELECT COUNT(*) FROM ing_record")
    counts = {"records_seen", "records_inserted", "landed", "promised"}
    assert {number(told[name]) for name in counts} == {truth}
    assert number(told["requests"]) == stage.sandbox.stats()["requests"]
    assert told["certificate"] == f"9 COMPLETE of 9 slices; {truth} of {truth} landed"
    assert told["dagster_run"] == harvested.run_id
    assert told["spec_fingerprint"] == stage.ledger("SELECT spec_fingerprint FROM ing_plan")
    assert told["filled_by"].startswith("ingest_job")
    cursor = stage.ledger("SELECT normalized_instant FROM ing_cursor")
    assert cursor.startswith(stage.day(HOLE))
    assert told["cursor_after"].startswith(f"{stage.instant(HOLE):%b} {stage.instant(HOLE).day}, 1")

    button(page, "Plots").click()
    expect(page.get_by_text("records_inserted", exact=True)).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    assert page.get_by_text("plan_id", exact=True).count() == 0
    shoot(page, "plots")

    button(page, "Table").click()
    page.get_by_role("link", name=harvested.run_id).click()  # who brought it
    page.wait_for_url(f"**/runs/{harvested.run_id}")


def test_the_lineage_leads_from_the_api_over_plans_and_records_to_the_cursors(
    stage: Stage, page: Page, harvested: Launched, shoot: Shoot
) -> None:
    page.set_viewport_size({"width": 1680, "height": 640})
    open_asset(page, stage.url, *WORKS)
    page.get_by_role("tab", name="Lineage").click()
    button(page, "All").click()
    groups = {
        name: page.locator("foreignObject").filter(has_text=re.compile(f"^{name}$"))
        for name in ("upstream", "plans", "records", "cursors")
    }
    zoom_out(page, groups["upstream"], groups["cursors"])
    expect(page.get_by_text("Loading...")).to_have_count(0)
    shoot(page, "lineage")

    boxes = [group.bounding_box() for group in groups.values()]
    left = [box["x"] for box in boxes if box is not None]
    assert len(left) == 4
    assert left == sorted(left)


def test_a_replay_is_launched_with_the_number_that_the_asset_shows_and_its_report_is_read(
    stage: Stage, page: Page, harvested: Launched, shoot: Shoot
) -> None:
    open_asset(page, stage.url, *WORKS)
    boxes = read_metadata(page, "blackbox")["blackbox"]
    (run, *_) = re.findall(r"patra replay (\d+), or replay_job", boxes)
    requests = stage.sandbox.stats()["requests"]

    open_launchpad(page, stage.url, "replay_job")
    type_config(page, "replay_batches", run=run)
    launch(page)
    assert watch(page) == "Success"
    read_steps(page, "replay_batches")
    page.get_by_placeholder("Filter…").fill("Yielded")
    expect(page.get_by_text("verdict", exact=True).first).to_be_visible()
    page.get_by_text("[Show Markdown]").first.click()
    report = dialog(page)
    expect(report).to_contain_text(f"Replay of run {run}")
    shoot(page, "replay")

    where = f"run_id = {run} AND status_code = 'SUCCEEDED'"
    batches = stage.ledger(f"SELECT COUNT(*) FROM ing_task_run_batch WHERE {where}")
    records = stage.ledger(f"SELECT COUNT(*) FROM ing_record WHERE run_id = {run}")
    expect(report).to_contain_text(
        f"EQUAL: {batches} batches of run {run} told again and held against the ledger:"
        f" nothing differs; records: {records} same."
    )
    assert (batches, records) == (2, RECORDS // DAYS)
    assert stage.sandbox.stats()["requests"] == requests  # told from stored bytes


def test_a_hole_in_the_coverage_is_found_and_filled(
    stage: Stage, page: Page, harvested: Launched, shoot: Shoot
) -> None:
    # He goes on two days later than he should have.
    harvest(page, stage, window_from=stage.day(HOLE + 1), window_to=stage.day(DAYS))

    open_asset(page, stage.url, *WORKS)
    page.get_by_role("tab", name="Partitions").click()
    expect(page.get_by_text(f"Materialized ({DAYS - 1})")).to_be_visible()
    look_at_day(page, stage.day(HOLE))
    expect(page.get_by_text("No metadata entries")).to_be_visible()
    wait_until_settled(page)
    shoot(page, "partitions")
    look_at_day(page, stage.day(HOLE - 1))
    inserted = page.get_by_role("row", name=f"records_inserted {RECORDS // DAYS}")
    expect(inserted).to_be_visible()

    judge_coverage(page)
    hole = f"[{stage.day(HOLE)}T00:00:00Z, {stage.day(HOLE + 1)}T00:00:00Z)"
    expect(page.get_by_text(f"The first hole is {hole}: nobody has planned it.")).to_be_visible(
        timeout=RUN
    )
    shoot(page, "coverage")

    harvest(page, stage)  # no dates: the next plan asks for what is missing
    open_asset(page, stage.url, *WORKS)
    judge_coverage(page)
    expect(page.get_by_text("No hole.")).to_be_visible(timeout=RUN)
    page.get_by_role("tab", name="Partitions").click()
    look_at_day(page, stage.day(HOLE))
    expect(inserted).to_be_visible()
    with stage.db.read() as tx:
        assert list_ids(tx, "sandbox", "works") == set(stage.sandbox.truth().ids)


def harvest(page: Page, stage: Stage, **fields: str) -> None:
    """Launch a harvest of the sandbox and watch it succeed."""
    open_launchpad(page, stage.url, "ingest_job")
    type_config(page, FIRST_OP, **fields, provenance="sandbox")
    launch(page)
    assert watch(page) == "Success"


def look_at_day(page: Page, day: str) -> None:
    """Choose a day in the list of an asset's partitions."""
    page.get_by_text(day, exact=True).first.click()
    expect(page.get_by_text("No partition selected")).to_have_count(0)


def judge_coverage(page: Page) -> None:
    """Execute the check on the page of an asset."""
    page.get_by_role("tab", name="Checks").click()
    page.get_by_text("coverage", exact=True).first.click()
    button(page, "Execute").click()
