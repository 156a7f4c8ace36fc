"""The questions of a file, whatever else stands in it."""

from __future__ import annotations

from pathlib import Path

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets._gather import BadRow
from ragauge.datasets._tables import SUFFIXES, parsed, table_rows

_NAMES = ("query", "question")


def questions_of(key: str, path: str | Path) -> list[str]:
    """The texts under `query` or `question` in every row of a JSON Lines, JSON, CSV or Parquet file.

    ConfigError, which names the config key, for a file that is not there; DataError names the row.
    """
    file = Path(path).expanduser()
    if not file.is_file() or not file.name.endswith(SUFFIXES):
        raise ConfigError(f"{key}: {path} is no file of {', '.join(SUFFIXES)}")
    found = []
    for where, row in table_rows(file):
        try:
            cells = parsed(row)
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
        texts = [cells[name] for name in _NAMES if isinstance(cells.get(name), str)]
        if not texts:
            raise DataError(f"{where}: neither 'query' nor 'question' holds a text; it has {', '.join(cells)}")
        found.append(texts[0])
    return found
