"""A browser, and what it is shown.

The browser is the machine's own Chromium: on the PATH, or at PATRA_TEST_CHROMIUM; none is ever
fetched. Without one these tests are skipped, which the summary says; PATRA_TEST_REQUIRE_BROWSER=1
makes that a failure. PATRA_SCREENSHOTS names a folder that gets the pictures of the documentation.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from patra_ingest_tests.browser.pages import LOAD
from patra_ingest_tests.browser.stage import Stage, open_stage

NO_BROWSER = "no Chromium: `apt-get install chromium`, or set PATRA_TEST_CHROMIUM to its path"
_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
_SIZE = {"width": 1400, "height": 1080}

Shoot = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path."""
    found = os.environ.get("PATRA_TEST_CHROMIUM") or shutil.which("chromium")
    if found is None or not Path(found).exists():
        if os.environ.get("PATRA_TEST_REQUIRE_BROWSER") == "1":
            pytest.fail(f"PATRA_TEST_REQUIRE_BROWSER=1, but {NO_BROWSER}", pytrace=False)
        pytest.skip(NO_BROWSER)
    return found


@pytest.fixture(scope="module")
def stage(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Dagster's UI over a fresh ledger, and a sandbox to harvest."""
    with open_stage(tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A browser that nobody has used before."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=chromium,
            args=_FLAGS,
            viewport=_SIZE,
            timezone_id="UTC",
            locale="en-US",
        )
        context.set_default_timeout(LOAD)
        expect.set_options(timeout=LOAD)
        yield context
        context.close()


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    """An empty page."""
    opened = browser.new_page()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shoot() -> Shoot:
    """Take a picture of a page for the documentation, if pictures are asked for."""
    folder = os.environ.get("PATRA_SCREENSHOTS")

    def take(page: Page, name: str) -> None:
        if folder:
            page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")

    return take


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give all tests that miss the browser one place to be skipped at: they become one line."""
    report = yield
    if report.skipped and NO_BROWSER in str(report.longrepr):
        report.longrepr = (__file__, 0, NO_BROWSER)
    return report
