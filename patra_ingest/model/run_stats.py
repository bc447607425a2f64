"""The numbers of a run: the sums over its committed batches, whoever has to write them down."""

from collections.abc import Sequence
from typing import Any

_CHANGES = ("inserted", "updated", "unchanged", "stale", "deleted")
_SUMMED = ("reqCount", "itemsCount", *_CHANGES)
_ALSO_SUMMED = ("quarantined", "outOfWindow", "retryCount", "429Count")


def run_stats(batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a run's stats: the sums over its own batches."""
    sums = {key: sum(stats[key] for stats in batches) for key in (*_SUMMED, *_ALSO_SUMMED)}
    latencies = [stats["latencyMs"] for stats in batches]
    return {
        **sums,
        "retCount": sums["itemsCount"],
        "skipped": sums["unchanged"] + sums["stale"] + sums["outOfWindow"],
        "failed": sums["quarantined"],
        "pagesVisited": len(batches),
        "hasNextLast": bool(batches) and batches[-1]["hasNext"],
        "avgLatencyMs": round(sum(latencies) / len(latencies), 1) if latencies else None,
        "maxLatencyMs": max(latencies, default=None),
        "rateAdjusted": any(_healed(stats, "qpsDownshift") for stats in batches),
        "circuitOpen": any(_healed(stats, "circuitOpen") for stats in batches),
        "late": sum(stats.get("late", 0) for stats in batches),
        "remarks": "online-reslice-suggested:false",
    }


def _healed(stats: dict[str, Any], action: str) -> bool:
    return bool(stats.get("selfHealing", {}).get(action))
