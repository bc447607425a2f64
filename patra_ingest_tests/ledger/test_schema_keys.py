"""The keys that make repeating a call harmless, and the indexes the hot queries stand on.

`test_schema.py` compares the dialects with each other; a key lost in both is noticed here.
"""

from sqlalchemy import inspect

PARTITION = ["provenance_code", "endpoint_name", "operation_code"]
NAMESPACE = ["namespace_scope_code", "namespace_key"]

UNIQUE = {
    "ing_plan": {"uk_plan_key": ["plan_key"]},
    "ing_plan_slice": {
        "uk_slice_unique": ["plan_id", "slice_no"],
        "uk_slice_sig": ["plan_id", "slice_signature_hash"],
    },
    "ing_task": {"uk_task_idem": ["idempotent_key"], "uk_task_slice": ["slice_id"]},
    "ing_task_run": {"uk_run_attempt": ["task_id", "attempt_no"]},
    "ing_task_run_batch": {
        "uk_run_batch_no": ["run_id", "batch_no"],
        "uk_run_before_tok": ["run_id", "before_token_hash"],
        "uk_batch_idem": ["idempotent_key"],
    },
    "ing_cursor": {"uk_cursor_ns": [*PARTITION, "cursor_key", *NAMESPACE]},
    "ing_cursor_event": {"uk_cur_evt_idem": ["idempotent_key"]},
    "ing_record": {"uk_record": ["provenance_code", "endpoint_name", "provider_id"]},
    "ing_outbox_message": {"uk_outbox_channel_dedup": ["channel", "dedup_key"]},
    "ing_quarantine": {"uk_quarantine_idem": ["idempotent_key"]},
    "ing_signal": {"uk_signal_dedup": ["dedup_key"]},
    "ing_reslice_request": {"uk_reslice_dedup": ["dedup_key"]},
    "ing_rate_bucket": {"uk_rate_bucket": ["rate_key"]},
    "ing_quota_window": {"uk_quota_window": ["rate_key", "window_from", "window_to"]},
    "ing_hold": {"uk_hold_active": ["provenance_code", "endpoint_name_key", "active_key"]},
}

PLAIN = {
    "ing_plan": {"idx_plan_namespace": [*PARTITION, *NAMESPACE]},
    "ing_plan_slice": {"idx_slice_plan_status": ["plan_id", "status_code"]},
    "ing_task": {
        "idx_task_queue": ["status_code", "leased_until", "priority", "scheduled_at", "id"],
        "idx_task_due": ["status_code", "priority", "scheduled_at", "id"],
        "idx_task_partition": [*PARTITION, "status_code"],
    },
    "ing_cursor_event": {
        "idx_cur_evt_timeline": [*PARTITION, "cursor_key", *NAMESPACE, "created_at"]
    },
}


def test_every_fact_of_the_ingest_has_its_key(db):
    with db.read() as tx:
        for table, expected in UNIQUE.items():
            found = inspect(tx).get_indexes(table)
            keys = {index["name"]: index["column_names"] for index in found if index["unique"]}
            assert keys == expected, table


def test_the_hot_queries_have_their_indexes(db):
    with db.read() as tx:
        for table, expected in PLAIN.items():
            found = {i["name"]: i["column_names"] for i in inspect(tx).get_indexes(table)}
            assert expected.items() <= found.items(), table


def test_only_a_table_that_nothing_repeats_has_no_key(db):
    with db.read() as tx:
        seen = inspect(tx)
        for table in seen.get_table_names():
            if "yoyo" not in table and not any(i["unique"] for i in seen.get_indexes(table)):
                # Each trigger is a fact of its own, also when it repeats another.
                assert table == "ing_schedule_instance"
