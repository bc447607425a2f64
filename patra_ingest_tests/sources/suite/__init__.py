"""Packs run through the whole engine against recordings: cases as data, one runner, one table.

A case says which recordings are served, what is asked of which endpoint, and what must come of it.
The pack is applied, planned and worked as in production, over real HTTP on the loopback, and the
ledger is held against what the files hold. Two kinds of cases exist, in one language:

- `../recorded_cases/CODE.yaml`: real answers, in ../shared/fixtures beside the project. Where that
  folder is missing these tests say that they were skipped.
- `../handmade/CODE/cases.yaml`: our own tiny, invented answers, in the same folder; always run.

To add a source, add its two files. `cases.py` has every key a case may say.

`make recorded` runs both kinds and prints a table.
"""
