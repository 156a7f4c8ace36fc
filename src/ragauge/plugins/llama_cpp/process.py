"""The server's own process, started with a folder and the settings as JSON.

It serves a model with llama.cpp's OpenAI-compatible server on the loopback interface, and ends soon after the last
process that uses it has ended, however that one ended.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

USERS, ADDRESS, STARTING, RUNNING = "users", "address.json", "starting.lock", "running.lock"
FROM_FILE = "file"  # the pooling that the file names
_PAUSE = 1.0  # seconds between two looks at the users
_LOGGING = 1.0  # seconds in which a thread of llama.cpp's writes why it cannot serve a file


def main(folder: Path, settings: Mapping[str, Any]) -> None:
    """Serves until no process holds a file of the folder's `users`."""
    with FileLock(folder / RUNNING, blocking=False):
        key = secrets.token_hex(16)
        server = _server(settings, key)
        told = {"address": f"{server.listening_address}/v1", "key": key, "pid": os.getpid()}
        written = folder / f"{ADDRESS}.new"
        written.write_text(json.dumps(told), encoding="utf-8")
        written.replace(folder / ADDRESS)
        while not _ends(folder):
            time.sleep(_PAUSE)


def _server(settings: Mapping[str, Any], key: str) -> Any:
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel = settings["context"] * settings["slots"], settings["slots"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # a waiting thread would take a core from the job
    params.cache_ram_mib = settings["cache_mib"]
    params.fit_params = False  # it would shorten the context without a word
    if settings["gpu_layers"] is not None:
        params.n_gpu_layers = settings["gpu_layers"]
    if settings["pooling"] is not None:
        params.embedding = True
        params.n_batch = params.n_ubatch = settings["context"]  # a text is computed at once, or refused
        params.kv_unified = True  # without it texts of several slots are cut, and their last pieces are the vectors
        if settings["pooling"] != FROM_FILE:
            name = f"LLAMA_POOLING_TYPE_{settings['pooling'].upper()}"
            params.pooling_type = getattr(xllamacpp.llama_pooling_type, name)
    params.ui, params.verbosity = False, 2
    try:
        return xllamacpp.Server(params)
    except RuntimeError:
        time.sleep(_LOGGING)
        raise


def _ends(folder: Path) -> bool:
    """True, with the address removed, where no process uses the server, and none is about to."""
    try:
        with FileLock(folder / STARTING, blocking=False):
            if _is_used(folder):
                return False
            (folder / ADDRESS).unlink(missing_ok=True)
            return True
    except Timeout:
        return False


def _is_used(folder: Path) -> bool:
    for user in (folder / USERS).iterdir():
        try:
            with FileLock(user, blocking=False):
                user.unlink()  # of a process that has ended
        except (Timeout, OSError):
            return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
