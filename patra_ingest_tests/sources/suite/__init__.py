"""Packs run through the whole engine against recordings: cases as data, one runner, one table.

A case says which recordings are served, what is asked of which endpoint, and what must come of it.
The pack is applied, planned and worked as in production, over real HTTP on the loopback, and the
ledger is held against what the files hold. Two kinds of cases exist, in one language:

- `../recorded_cases/CODE.yaml`: real answers, in ../shared/fixtures beside the project. Where that
  folder is missing these tests say that they were skipped.
- `../handmade/CODE/cases.yaml`: our own tiny, invented answers, in the same folder; always run.

`make recorded` runs both kinds and prints a table. CODE is the code of a built-in pack.

To add a source, write its file (`cases.py` has every key; crossref is the example to copy):

1. Name the folder of the recordings. A case may name another one (`folder:`) for its files.
2. A walk: list its pages under `serve`, in their order, with `paging.page_size` as it was recorded.
   `path:` where the pack asks another path than the one that was recorded.
3. Where a recording ends before the source did, two cases are true: as recorded it is INCOMPLETE;
   and with `swap` the promised total becomes what was recorded, so the walk can end as it does. An
   answer that nobody recorded a question for gets one by `as`, or stands `after` a page.
4. One answer, one page: `each` makes a case of every file; `each_as` is the question they answer.
5. Errors: the same, with the action of the pack's rule as `outcome`, and words that it `says`.
6. `ids` tells how to read the ids out of a file. Never by the pack: that is what is tested.
7. Every other file of the folder goes to `not_asked`, with the reason.

A request that nothing answers fails the case, and the failure names the closest recordings. A pack
with a `cap.probe` counts first: the first page answers that too, if no recording of a count does.
"""
