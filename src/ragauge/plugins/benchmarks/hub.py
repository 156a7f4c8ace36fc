"""Tables of rows with named columns: local files, or a data set of the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import require_extra
from ragauge.datasets.files import SUFFIXES, is_table, table_rows


@dataclass(frozen=True)
class Table:
    """The source of rows: a path or a name on the hub, and which part to read.

    key: the config key without `dataset.`, for errors. subset and split: of a folder its subfolder, and the
        files whose names begin so.
    """

    key: str
    path: str
    subset: str | None = None
    split: str | None = None
    revision: str | None = None

    def files(self) -> list[Path]:
        """The files that hold the rows, in order; downloads those of the hub."""
        return [Path(file["filename"]) for file in self._hub().cache_files] if self._remote else self._local()

    def rows(self) -> Iterator[tuple[str, Any]]:
        """The place of each row, and the row: a mapping, or a line of JSON as bytes."""
        if self._remote:
            for number, row in enumerate(self._hub(), start=1):
                yield f"{self.path}, row {number}", row
            return
        for file in self._local():
            yield from table_rows(file)

    @property
    def _remote(self) -> bool:
        return not Path(self.path).expanduser().exists()

    def _local(self) -> list[Path]:
        path = Path(self.path).expanduser()
        if path.is_file():
            if not is_table(path):
                raise ConfigError(
                    f"dataset.{self.key}={self.path}: allowed are files of {', '.join(SUFFIXES)}, packed or not"
                )
            return [path]
        folder = path / self.subset if self.subset else path
        there = sorted(file for file in folder.rglob("*") if is_table(file) and file.is_file())
        chosen = [file for file in there if self.split is None or file.name.startswith(self.split)]
        if not chosen:
            names = ", ".join(file.relative_to(folder).as_posix() for file in there[:5]) or "none"
            begin = f" whose name begins with {self.split!r}" if self.split else ""
            of = f"file of {', '.join(SUFFIXES)}{begin}"
            raise ConfigError(f"dataset.{self.key}={self.path}: there is no {of}; there are {names}")
        return chosen

    def _hub(self) -> Any:
        return from_hub(self.key, self.path, self.subset, self.split, self.revision)


@lru_cache(maxsize=8)
def from_hub(key: str, path: str, subset: str | None, split: str | None, revision: str | None) -> Any:
    """One split of a data set by the library `datasets`, which runs no code of it; ConfigError if there is none."""
    require_extra(f"dataset.{key}={path}: there is no such file or folder, and a data set of the hub", "datasets")
    import datasets

    if path.isidentifier() and find_spec(f"datasets.packaged_modules.{path}") is not None:
        # A reader of the library's own, which would take the files of the working directory.
        raise ConfigError(f"dataset.{key}={path}: is a kind of file; give the path of a file or folder, or a hub name")
    try:
        found = datasets.load_dataset(path, subset, split=split, revision=revision)
    except Exception as error:  # its own errors, those of the network and of many parsers
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"dataset.{key}={path}: there is no such file or folder, and the hub gave none: "
            f"{type(error).__name__}: {reason}"
        ) from error
    if isinstance(found, datasets.Dataset):
        return found
    splits = [str(split) for split in found]
    if len(splits) == 1:
        return found[splits[0]]
    raise ConfigError(f"dataset.{key}={path}: set the split, one of {', '.join(splits)}")
