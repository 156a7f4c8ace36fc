"""Content-addressed stage outputs on disk: get one, or make it once.

The plug-in `upkeep` lists, shows, checks and removes them.
"""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.store._entries import (
        CHECKPOINTS,
        DRAFTS,
        Entry,
        Key,
        Store,
        canonical_json,
        default_folder,
        default_ledger,
        link_files,
        locked,
    )
    from ragauge.store._manifest import KEY_FILE, damage_in, damage_in_words, file_sha256, read_manifest
    from ragauge.store._parquet import frame_digest

__all__ = [
    "CHECKPOINTS",
    "DRAFTS",
    "KEY_FILE",
    "Entry",
    "Key",
    "Store",
    "canonical_json",
    "damage_in",
    "damage_in_words",
    "default_folder",
    "default_ledger",
    "file_sha256",
    "frame_digest",
    "link_files",
    "locked",
    "read_manifest",
]

__getattr__ = lazily(__name__)
