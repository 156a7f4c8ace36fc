"""One server for each model file on a machine, started by the first process that asks and shared by all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from ragauge.contract.checks import require_count
from ragauge.contract.errors import ConfigError
from ragauge.plugins.llama_cpp import fitting
from ragauge.plugins.llama_cpp.gguf import header_of
from ragauge.plugins.llama_cpp.process import ADDRESS, RUNNING, STARTING, USERS

log = logging.getLogger(__name__)

_WISHES = ("threads", "context", "slots", "gpu_layers")
_LOG = "log.txt"
_CACHE_MIB = 1024  # memory for prompts of earlier requests, at most
_LONG = 10.0  # seconds after which loading is reported
_PAUSE = 0.05

_held: dict[tuple[int, Path], FileLock] = {}  # by process: a fork is another one
_started: list[subprocess.Popen[bytes]] = []  # an object that is collected would warn of its running process


class Place(NamedTuple):
    """Where a server answers, and the key that it asks for."""

    address: str
    key: str


def root() -> Path:
    """The folder of this user's servers on this machine; ConfigError where it is another user's."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"ragauge-llama-cpp-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.stat()
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o077):
        raise ConfigError(f"llama_cpp: {folder} belongs to another user, or others may use it; remove it")
    return folder


def wishes(group: str, given: object) -> dict[str, int | None]:
    """The settings of a server as a component has them; ConfigError, which names the config group, for no number."""
    found = {name: getattr(given, name) for name in _WISHES}
    for name, value in found.items():
        require_count(f"{group}.{name}", value, least=0 if name == "gpu_layers" else 1, null="the one that fits")
    return found


def serve(key: str, file: Path, weights: str, wish: Mapping[str, int | None], pooling: str | None = None) -> Place:
    """The place of the running server of these weights, started if there is none; this process then uses it.

    wish: threads, context, slots and gpu_layers, None for those that are found. pooling: that of a server for vectors,
    `file` for the one that the file names; None is a server for chats. Processes with other wishes have another server.
    ConfigError, which names `key`, where the model cannot be served.
    """
    wanted = [weights, dict(wish), *([pooling] if pooling else [])]
    name = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
    folder = root() / name
    (folder / USERS).mkdir(parents=True, exist_ok=True)
    with FileLock(folder / STARTING):  # a server does not end in between
        _hold(folder)
        return _running(folder) or _start(key, file, wish, pooling, folder)


def is_served(place: Place) -> bool:
    """Whether the server of the place still runs."""
    return any(_running(folder) == place for pid, folder in _held if pid == os.getpid())


def _hold(folder: Path) -> None:
    """Marks this process as a user of the server; the mark ends with the process."""
    mine = os.getpid(), folder
    if mine not in _held:
        lock = FileLock(folder / USERS / uuid.uuid4().hex)
        lock.acquire()
        _held[mine] = lock


def _running(folder: Path) -> Place | None:
    try:
        with FileLock(folder / RUNNING, blocking=False):
            return None
    except Timeout:
        pass
    try:
        told = json.loads((folder / ADDRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it is still loading, or was killed while it was
        return None
    return Place(told["address"], told["key"])


def _start(key: str, file: Path, wish: Mapping[str, int | None], pooling: str | None, folder: Path) -> Place:
    fit = fitting.fitted(key, header_of(key, file), wish, fitting.free_memory(), fitting.cores())
    spare = _CACHE_MIB if fit.spare is None else min(_CACHE_MIB, (fit.spare >> 20) // 2)
    settings: dict[str, Any] = {
        "path": str(file), "threads": fit.threads, "context": fit.context, "slots": fit.slots,
        "cache_mib": spare, "gpu_layers": wish["gpu_layers"], "pooling": pooling,
    }  # fmt: skip
    (folder / ADDRESS).unlink(missing_ok=True)
    command = [sys.executable, "-m", "ragauge.plugins.llama_cpp.process", str(folder), json.dumps(settings)]
    with (folder / _LOG).open("wb") as out:
        # A session of its own: an interrupt at the terminal ends the job, and the server after it.
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, start_new_session=True
        )
    _started.append(server)
    began, said = time.monotonic(), False
    while not (folder / ADDRESS).exists():
        if server.poll() is not None:
            raise ConfigError(f"{key}: llama.cpp cannot serve {file.name}: {_reason(folder / _LOG)}")
        if not said and time.monotonic() - began > _LONG:
            said = True
            log.info("llama.cpp loads %s", file.name)
        time.sleep(_PAUSE)
    log.info(
        "llama.cpp serves %s: threads=%d slots=%d context=%d", file.name, fit.threads, fit.slots, fit.context
    )  # fmt: skip
    place = _running(folder)
    if place is None:
        raise ConfigError(f"{key}: llama.cpp ended while it loaded {file.name}: {_reason(folder / _LOG)}")
    return place


def _reason(file: Path) -> str:
    """The first error in the server's log, else its last line."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [found[1] for line in lines if (found := re.match(r"[\d.]+ E (?:\w+: )*(.*)", line.strip()))]
    return (errors or lines[-1:] or ["it says nothing"])[0].strip()
