"""The table of the recorded suite, printed when its tests have run."""

import pytest

pytest.register_assert_rewrite("patra_ingest_tests.sources.suite.run_case")

from patra_ingest_tests.sources.suite.cases import SKIPPED  # noqa: E402 - after the line above
from patra_ingest_tests.sources.suite.table import Row, write_table  # noqa: E402


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one row for each source whose cases ran or were skipped."""
    rows: dict[tuple[str, str], Row] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            told = dict(getattr(report, "user_properties", ()))
            if "suite" in told:
                row = rows.setdefault(tuple(told["suite"]), Row())
                row.add(outcome, told.get("numbers"))
    if rows:
        terminalreporter.ensure_newline()
        skipped = [one for one in terminalreporter.stats.get("skipped", []) if _is_missed(one)]
        if skipped:
            lines = ("", f"Recorded answers of real sources: {len(skipped)} SKIPPED, {SKIPPED}")
            terminalreporter.write("\n".join((*lines, "")), yellow=True)
        for line in write_table(rows):
            terminalreporter.write_line(line)


def _is_missed(report: pytest.TestReport) -> bool:
    return SKIPPED in str(report.longrepr) and "test_suite.py" in report.nodeid
