"""Milvus clients: cached connections, Milvus Lite in this process, and errors on one line."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, causes
from ragauge.contract.extras import require_extra

# Files of Milvus Lite that are written once under a name of their own and never changed.
_WRITTEN_ONCE = (".parquet", ".idx")
_KEPT_OPEN = 2  # clients of one process; the data of Milvus Lite are in its memory
# pymilvus asks every 10 s whether the server is there; that of Milvus Lite then hangs up on work of half a
# minute, and pymilvus asks for the same work again.
_NO_PINGS = {"grpc.keepalive_time_ms": 2**31 - 1, "grpc.keepalive_permit_without_calls": False}
_LONGEST_SOCKET = 100  # characters of a Unix socket's path; systems take 104 to 108

_lock = threading.RLock()
_clients: OrderedDict[tuple[Any, ...], tuple[Any, ExitStack]] = OrderedDict()


def kept(key: tuple[Any, ...], opened: Callable[[ExitStack], Any]) -> Any:
    """The cached client under this key, opened if missing; closes the least recently used ones.

    opened: makes the client, and puts on the stack what is to be done when it is closed.
    """
    key = (os.getpid(), *key)  # a forked process cannot use the connections of its parent
    with _lock:
        if key not in _clients:
            with ExitStack() as stack:
                client = opened(stack)
                _clients[key] = client, stack.pop_all()
            while len(_clients) > _KEPT_OPEN:
                _close(next(iter(_clients)))
        _clients.move_to_end(key)
        return _clients[key][0]


@atexit.register
def close_all() -> None:
    """Closes all clients of this process."""
    with _lock:
        for key in list(_clients):
            _close(key)


def _close(key: tuple[Any, ...]) -> None:
    _, stack = _clients.pop(key)
    if key[0] == os.getpid():
        stack.close()


@contextmanager
def told_in_one_line(who: str) -> Iterator[None]:
    """Turns exceptions of pymilvus within the block into a ConfigError that begins with `who`."""
    _require_packages()
    import grpc
    from pymilvus import MilvusException

    try:
        yield
    except (grpc.RpcError, MilvusException) as error:
        rpc = next((link for link in causes(error) if isinstance(link, grpc.RpcError)), None)
        code = rpc.code().name if rpc is not None and hasattr(rpc, "code") else ""
        own = error.message if isinstance(error, MilvusException) else str(error)
        raise ConfigError(f"{who}: {_reason(code, ' '.join(own.split()))}") from error


def _reason(code: str, said: str) -> str:
    """The error message, from gRPC's code ("" for none) and Milvus's own text."""
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED") or "auth check failure" in said:
        return "the server does not take the token; retriever.token='${oc.env:NAME}' reads it from a variable"
    if code == "DEADLINE_EXCEEDED" and not said.startswith("Fail connecting"):
        return "no answer within retriever.timeout; raise it where the server is slow"
    if code == "UNAVAILABLE" or said.startswith("Fail connecting"):
        return f"no Milvus answers ({said})"
    return said or "it gave no reason"


def connected(
    stack: ExitStack, uri: str, token: str | None, timeout: float, options: Mapping[str, Any] | None = None
) -> Any:
    """A client of the server at the address; pushes its closing onto the stack.

    options: those of gRPC, in the place of pymilvus's own.
    """
    _require_packages()
    from pymilvus import MilvusClient

    given = {"timeout": timeout, "dedicated": True, "grpc_options": dict(options or {})}
    client = MilvusClient(uri, token=token or "", **given)  # type: ignore[arg-type]
    stack.callback(client.close)
    return client


def lite(stack: ExitStack, folder: Path, timeout: float) -> Any:
    """A client of Milvus Lite over the folder, which it writes to and locks for other processes.

    Its server is a thread of this process and listens on a Unix socket in a folder that only this user may
    enter, on no port.
    """
    _require_packages(lite=True)
    from milvus_lite.adapter.grpc.server import start_server_in_thread
    from milvus_lite.exceptions import DataDirLockedError

    private = _temporary(stack)
    socket = private / "socket"
    if len(str(socket)) > _LONGEST_SOCKET:
        raise ConfigError(f"TMPDIR={private.parent}: Milvus Lite wants a shorter path for its socket, as /tmp")
    try:
        server, database, _ = start_server_in_thread(str(folder), "unix", str(socket))  # type: ignore[arg-type]
    except DataDirLockedError as error:
        raise ConfigError(f"{folder}: another process has it open; Milvus Lite takes one at a time") from error
    stack.callback(database.close)
    stack.callback(lambda: server.stop(grace=2).wait())
    return connected(stack, f"unix:{socket}", None, timeout, _NO_PINGS)


def lite_copy(stack: ExitStack, source: Path, timeout: float) -> Any:
    """A client of Milvus Lite over a copy of a folder, which stays unchanged.

    The process works in its own folder, which has links to the files that are never written again and copies of the few
    others. So any number of processes search the same data side by side.
    """
    own = _temporary(stack) / "data"
    own.mkdir()
    for file in sorted(source.rglob("*")):
        at = own / file.relative_to(source)
        if file.is_dir():
            at.mkdir()
        elif file.suffix in _WRITTEN_ONCE:
            at.symlink_to(file.resolve())
        else:
            shutil.copyfile(file, at)
    return lite(stack, own, timeout)


def _temporary(stack: ExitStack) -> Path:
    folder = tempfile.mkdtemp(prefix="ragauge-milvus-")  # only this user may enter it
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _require_packages(lite: bool = False) -> None:
    """ConfigError if a needed package is missing."""
    require_extra("retriever=milvus", "pymilvus", *(["milvus_lite"] if lite else []))
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what fails is raised, and told once
    logging.getLogger("grpc._server").addFilter(_is_no_gap)


def _is_no_gap(record: logging.LogRecord) -> bool:
    """False for the log of a call that Milvus Lite lacks; pymilvus does without."""
    return not record.exc_info or record.exc_info[0] is not NotImplementedError
