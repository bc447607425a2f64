"""Patra Ingest, in the order a trigger walks through it.

model      the values everything speaks of: windows, keys, codes, lifecycles, lineage
expr       paths into responses and `${…}` templates for requests
spec       a declaration becomes a checked, frozen spec snapshot
packs      the built-in provenances, one YAML file each
registry   packs in and out of the `reg_*` tables
planner    a trigger becomes a plan, its slices and their tasks
executor   a leased task becomes records, batch by batch
cursor     how far a namespace has come
rate       who may send a request, and when
transport  the request on the wire
rawstore   response bodies, kept by their SHA-256
ledger     the SQL tables, one module each
views      read-only questions to the ledger
sandbox    a local upstream that tells the truth about itself
cli        the `patra` command
defs       Dagster, thin over all of the above
"""
