"""What a person does in Dagster's UI: words that he reads and clicks, no address typed by hand."""

import re

from playwright.sync_api import Locator, Page, expect

LOAD = 60_000  # milliseconds; a page on a loaded machine
RUN = 180_000  # a run, from launch to end


def go_to(page: Page, part: str) -> None:
    """Choose a part of the UI in its navigation."""
    page.locator(f'a[href="{part}"]').first.click()


def button(page: Page, name: str) -> Locator:
    """Return a button by its words; its icon has a name as well."""
    return page.locator("button").filter(has_text=re.compile(f"^{name}$"))


def open_launchpad(page: Page, url: str, job: str) -> None:
    """Go to the Launchpad of a job, by the list of jobs."""
    page.goto(url)
    go_to(page, "/jobs")
    page.locator(f'a[href$="/jobs/{job}"]').first.click()
    page.get_by_role("tab", name="Launchpad").click()
    # What it is filled with at first comes late, and would be written over what is typed before.
    expect(_editor(page)).to_contain_text("config:")


def type_config(page: Page, op: str, **fields: object) -> None:
    """Write a run's config into the editor."""
    lines = ["ops:", f"  {op}:", "    config:"]
    lines += [f"      {name}: {value}" for name, value in fields.items()]
    _editor(page).click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text("\n".join(lines))
    expect(_editor(page)).to_contain_text(lines[-1].strip())


def _editor(page: Page) -> Locator:
    return page.locator(".CodeMirror").first


def launch_button(page: Page) -> Locator:
    """Return the button that launches what is typed."""
    return button(page, "Launch Run")


def launch(page: Page) -> str:
    """Launch what is typed; return the id of the run, whose page is shown then."""
    expect(page.get_by_text("No errors", exact=True)).to_be_visible()
    expect(launch_button(page)).to_be_enabled()
    launch_button(page).click()
    page.wait_for_url("**/runs/*")
    return page.url.rpartition("/")[2]


def watch(page: Page) -> str:
    """Watch a run until it has ended; return how."""
    ended = page.get_by_text(re.compile("^(Success|Failure|Canceled)$")).first
    ended.wait_for(timeout=RUN)
    return ended.inner_text()


def read_steps(page: Page, last: str) -> list[str]:
    """Return the steps of a run that the chart shows as succeeded, once the last of them is."""
    succeeded = page.locator('.chart-element.box[style*="green"]')
    expect(succeeded.and_(page.locator(f'[data-tooltip="{last}"]'))).to_be_visible()
    return [str(step) for step in succeeded.evaluate_all("all => all.map(x => x.dataset.tooltip)")]


def zoom_out(page: Page, *boxes: Locator) -> None:
    """Make the lineage smaller until these boxes of it are in sight, from edge to edge."""
    out = page.locator("button:has([aria-label=zoom_out])")
    left, right = button(page, "Nearest Neighbors").bounding_box(), out.bounding_box()
    assert left is not None
    assert right is not None
    for box in boxes:
        box.wait_for()
    for _ in range(20):
        seen = [box.bounding_box() for box in boxes]
        if all(one and left["x"] < one["x"] < right["x"] - one["width"] for one in seen):
            return
        out.click()
    raise AssertionError("The lineage cannot be brought into sight.")


def wait_until_settled(page: Page) -> None:
    """Wait until nothing on the page turns any more."""
    expect(page.locator(".spinnerGlobal")).to_have_count(0)


_MOST_TURNS = 100  # of the wheel


def open_asset(page: Page, url: str, *key: str) -> None:
    """Go to an asset, by the folders of the catalog."""
    page.goto(url)
    go_to(page, "/assets")
    page.locator("button:has([aria-label=folder])").first.click()
    for depth in range(1, len(key)):
        _reveal(page, f'a[href^="/assets/{"/".join(key[:depth])}?"]').click()
    page.locator(f'a[href="/assets/{"/".join(key)}"]').first.click()
    expect(page.get_by_role("tab", name="Overview")).to_be_visible()


def _reveal(page: Page, selector: str) -> Locator:
    """Return the first such link; Dagster draws only the rows of a list that are in sight."""
    link = page.locator(selector).first
    for _ in range(_MOST_TURNS):
        if link.count():
            break
        width, height = _size(page)
        page.mouse.move(width / 2, height / 2)
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(200)
    return link


def _size(page: Page) -> tuple[int, int]:
    size = page.viewport_size
    return (size["width"], size["height"]) if size else (800, 600)


def read_metadata(page: Page, until: str) -> dict[str, str]:
    """Return the table of an asset's Overview, once it shows a key."""
    page.get_by_role("cell", name=until, exact=True).first.wait_for()
    rows = page.locator("table tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return {cells[0]: cells[-1] for cells in rows if len(cells) == 3}


def dialog(page: Page) -> Locator:
    """Return the dialog that asks for attention; tooltips call themselves one, too."""
    return page.locator("[role=dialog][aria-modal=true]")


def number(shown: str) -> int:
    """Return the number that a page shows, whatever its separators."""
    return int(shown.replace(",", ""))
