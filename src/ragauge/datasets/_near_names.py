"""Warns of columns with misspelled names, such as `Reference` for `reference`."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

log = logging.getLogger(__name__)

_DIGIT = re.compile(r"\d")
_CUTOFF = 0.84  # of difflib's ratio: one letter more, less or other in a name of six


def warn_of_near_names(file: Path, columns: Iterable[str], names: Mapping[str, Sequence[str]]) -> None:
    """Logs one warning that lists the columns whose names differ from those in `names` by case or a letter or two."""
    by_letters = {_letters(name): name for of_key in reversed(list(names.values())) for name in reversed(of_key)}
    exact = {name for of_key in names.values() for name in of_key}
    found = {}
    for column in columns:
        letters = _letters(column)
        near = [letters] if letters in by_letters else difflib.get_close_matches(letters, by_letters, 1, _CUTOFF)
        # question_id and answer_2 are no misspelled question and answer.
        if column not in exact and near and abs(len(near[0]) - len(letters)) < 2 and not _DIGIT.search(letters):
            found[column] = by_letters[near[0]]
    if found:
        said = ", ".join(f"{column!r} (for {name!r}?)" for column, name in found.items())
        log.warning("%s: read as attributes, though their names are nearly known ones: %s", file, said)


def _letters(name: str) -> str:
    """The name without case, spaces, hyphens and underscores."""
    return re.sub(r"[\W_]", "", name).casefold()
