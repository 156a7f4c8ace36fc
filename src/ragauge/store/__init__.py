"""Content-addressed stage outputs on disk: get one, or make it once.

`ragauge store` lists, shows, checks and removes them.
"""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.store._entries import (
        KEY_FILE,
        Entry,
        Key,
        Store,
        canonical_json,
        file_sha256,
        link_files,
        locked,
    )

__all__ = ["KEY_FILE", "Entry", "Key", "Store", "canonical_json", "file_sha256", "link_files", "locked"]

__getattr__ = lazily(__name__)
