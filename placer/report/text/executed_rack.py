"""What became of packets in a compiled rack, as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placer.report.text.table import text_table

if TYPE_CHECKING:
    from placer.metacompiler.execute import RackRun


def executed_document(result: RackRun) -> Mapping[str, Any]:
    """What `placer chain exec --format json` prints."""
    return {
        "received": result.received,
        "sent": result.sent,
        "dropped_by_nfs": result.dropped_by_nfs,
        "dropped": dict(sorted(result.dropped.items())),
        "explained": result.is_explained,
        "nfs": {
            name: {"entered": one.entered, "sent": one.sent, "dropped": one.dropped} for name, one in result.nfs.items()
        },
        "seconds": round(result.seconds, 3),
    }


def executed_report(document: Mapping[str, Any]) -> str:
    """What `placer chain exec` prints."""
    rows = [(name, one["entered"], one["sent"], one["dropped"]) for name, one in document["nfs"].items()]
    table = text_table(("NF", "entered", "sent", "dropped"), rows, words=1)
    drops = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in document["dropped"].items()]
    by_nfs = document["dropped_by_nfs"]
    drops += [f"{by_nfs:,} by NFs"] if by_nfs else []
    lines = [f"{document['received']:,} packets came from the world, {document['sent']:,} went to it."]
    lines += [f"Dropped: {', '.join(drops)}."] if drops else ["None was dropped."]
    if not document["explained"]:
        lines.append("Some packets are missing: what came in is not what went out and what was dropped.")
    return table + "\n" + "\n".join(lines) + "\n"
