"""Warns of columns with misspelled names, such as `Reference` for `reference`."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

log = logging.getLogger(__name__)

# By key, words in names of columns that may hold it, and words in names of columns that hold something about it.
_LIKE = {
    "reference": frozenset(("answer", "answers", "reference", "references", "truth", "expected", "gold", "target")),
    "evidence": frozenset(("evidence", "context", "contexts", "passage", "passages", "supporting")),
}
_A = {"reference": "a reference answer", "evidence": "evidence"}
_NOT = frozenset(("id", "ids", "type", "count", "number", "score", "length", "tokens", "date", "wrong", "by"))
_DIGIT = re.compile(r"\d")
_CUTOFF = 0.84  # of difflib's ratio: one letter more, less or other in a name of six


def warn_of_near_names(
    file: Path, columns: Iterable[str], names: Mapping[str, Sequence[str]], lacking: Iterable[str] = ()
) -> None:
    """Warns of columns whose names differ from those in `names` by case or a letter or two.

    `lacking` are the keys of `_LIKE` that no row of the file has: columns whose names speak of them are named, too.
    """
    columns = list(columns)
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
    for what in lacking:
        others = [column for column in columns if column not in found and column not in exact]
        about = {column: _words(column) for column in others if not _DIGIT.search(column)}
        if like := [column for column, words in about.items() if words & _LIKE[what] and not words & _NOT]:
            shown, known = ", ".join(map(repr, like)), ", ".join(names[what])
            log.warning("%s: no row has %s; read as attributes: %s (known names: %s)", file, _A[what], shown, known)


def _words(name: str) -> frozenset[str]:
    """The words of a name such as expectedAnswer or gold_answer, in lower case."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))


def _letters(name: str) -> str:
    """The name without case, spaces, hyphens and underscores."""
    return re.sub(r"[\W_]", "", name).casefold()
