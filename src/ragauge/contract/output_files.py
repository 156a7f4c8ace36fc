"""Output files of commands: only --force replaces a file that ragauge did not write."""

from __future__ import annotations

import argparse
import json
import os
import stat
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, full_disk
from ragauge.contract.redact import redact_tree

_LOOKED_AT = 400  # characters at the beginning of a file, in which its mark stands


def add_force(parser: argparse.ArgumentParser) -> None:
    """Adds the option --force to a command with output files."""
    parser.add_argument("--force", action="store_true", help="write over a file that ragauge did not write")


def refuse_foreign(file: Path, mark: str | Sequence[str], force: bool) -> None:
    """ConfigError for an existing file without ragauge's mark at its beginning, unless force is set.

    mark: what every such file of ragauge has at its beginning, or several texts of which one is there. An empty file
    may be written, and what is no plain file, such as /dev/stdout, is.
    """
    if force:
        return
    try:
        if not file.is_file():
            return
        with file.open("rb") as stream:
            begins = stream.read(_LOOKED_AT)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be written: {getattr(error, 'strerror', error)}") from error
    marks = [mark] if isinstance(mark, str) else mark
    if begins and not any(one.encode() in begins for one in marks):
        raise ConfigError(f"{file} is there, and ragauge did not write it: give another name, or --force")


def write_output(file: Path, text: str) -> None:
    """Writes a text atomically; ConfigError if that is impossible, OSError if the disk is full."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():  # a pipe or a device takes what comes
            file.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            return
        with replacing(Path(os.path.realpath(file))) as draft:
            draft.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    except OSError as error:
        if full_disk(error):
            raise
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A path to write to, which then replaces the file; a link itself is replaced.

    Where the block raises, the file stays as it was.
    """
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        yield draft
        if file.exists() and not file.is_symlink():
            os.chmod(draft, stat.S_IMODE(file.stat().st_mode))
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file atomically, without secrets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(json.dumps(redact_tree(value), indent=1, ensure_ascii=False, default=float), encoding="utf-8")
