"""Where a job's frames lie: a tag of its MLflow run names its folder, its store and the stored outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

TAG = "ragauge.frames"
# Frames that are read back as they were stored; contexts are cut from layouts and prefixes.
STORED = (
    "topics", "evidence", "chunks", "run", "layouts", "prefixes", "scores", "answers", "verdicts",
)  # fmt: skip
_ENTRY = re.compile(r"\w+/[0-9a-f]{64}")


@dataclass(frozen=True)
class Whereabouts:
    """A job's folder and store, None where they are not on this machine; <stage>/<digest> by frame."""

    folder: Path | None = None
    store: Path | None = None
    entries: Mapping[str, str] = field(default_factory=dict)


def as_tag(pipeline: Pipeline, folder: Path) -> dict[str, str]:
    """The tag by which a job's frames are found again."""
    found = {
        "folder": str(folder.absolute()),
        "store": str(pipeline.store.root.absolute()),
        "frames": pipeline.entries_of(STORED),
    }
    return {TAG: json.dumps(found)}


def from_tags(tags: Mapping[str, str]) -> Whereabouts:
    """What the tag says, as far as it is so on this machine; nothing where the tag is missing or is damaged.

    An MLflow server may be shared: a store is a folder of this machine, and an entry a digest, or they are
    not looked at.
    """
    try:
        told = json.loads(tags.get(TAG, "{}"))
        folder, store = Path(told["folder"]), Path(told["store"])
        entries = {str(k): v for k, v in told["frames"].items() if _ENTRY.fullmatch(v)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return Whereabouts()
    return Whereabouts(
        folder if folder.is_dir() else None,
        store if store.is_absolute() and store.is_dir() else None,
        entries,
    )
