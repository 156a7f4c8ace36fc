"""Limits size and time of an MLflow server's answers.

MLflow's client asks by `requests`, which limits the time between two bytes alone. `limit_answers` has every session of
that client limit the whole answer, too: an answer without an end is an error of `requests`, as a server that says
nothing is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_LONGEST = 64 << 20  # bytes of an answer, unpacked; a page of 500 runs has some 25 MB
_LONGEST_FILE = 4 << 30  # bytes of an artifact
_PIECE = 64 << 10
_SLOWEST = 64 << 10  # bytes a second that a body comes, or is sent, with on the average
_BODY_SECONDS = 20.0  # that a body may take beside that
# The time of a request up to its body, retries included, over MLflow's limit for the time between two bytes.
_WHOLE = 1.8
_DEFAULT_TIMEOUT = 120.0  # seconds, MLflow's own


def limit_answers() -> None:
    """Makes MLflow's client limit its reads, from now on in the whole process."""
    from mlflow.utils import request_utils

    session_of = request_utils._get_request_session
    if getattr(session_of, "limits", False):
        return

    @functools.wraps(session_of)
    def limited(*given: Any, **named: Any) -> Any:
        session = session_of(*given, **named)
        adapters: Any = session.adapters
        for adapter in adapters.values():
            if not getattr(adapter, "limits", False):
                adapter.limits = True
                adapter.poolmanager.pool_classes_by_scheme = _pools()
                adapter.send = functools.partial(_send, adapter.send)
        return session

    limited.limits = True  # type: ignore[attr-defined]
    request_utils._get_request_session = limited


def _send(send: Callable[..., Any], request: Any, *given: Any, stream: bool = False, **named: Any) -> Any:
    """The response of the adapter's own `send` with a limited body; RequestException for an endless one."""
    from requests.exceptions import ReadTimeout
    from requests.utils import super_len

    timeout = named.get("timeout")
    between = timeout if isinstance(timeout, (int, float)) else _DEFAULT_TIMEOUT
    seconds = _WHOLE * between + (super_len(request.body) if request.body else 0) / _SLOWEST
    try:
        response = _within(lambda: send(request, *given, stream=True, **named), seconds)
    except TimeoutError:
        response = None
    if response is None:
        raise ReadTimeout(f"no whole answer within {seconds:.0f} s", request=request)
    pieces = functools.partial(_pieces, response, _LONGEST_FILE if stream else _LONGEST)
    if stream:
        response.iter_content = lambda chunk_size=1, decode_unicode=False: pieces()
    else:
        response._content = b"".join(pieces())
        response._content_consumed = True
    return response


def _pieces(response: Any, most: int) -> Iterator[bytes]:
    """The unpacked body, up to `most` bytes and above a lowest speed."""
    from time import monotonic

    from requests.exceptions import ReadTimeout, RequestException

    body, n_bytes, waited = type(response).iter_content(response, _PIECE), 0, 0.0
    while True:
        began = monotonic()
        left = _BODY_SECONDS + n_bytes / _SLOWEST - waited
        try:
            piece: bytes | None = _within(lambda: next(body, b""), max(0.0, left))
        except TimeoutError:
            piece = None  # nor is the response closed, since that would wait for the thread that reads it
        if piece is None:
            raise ReadTimeout(f"the answer came with less than {_SLOWEST >> 10} KiB a second", request=response.request)
        if not piece:
            return
        waited, n_bytes = waited + monotonic() - began, n_bytes + len(piece)
        if n_bytes > most:
            response.raw.close()
            raise RequestException(f"the answer is longer than {most >> 20} MiB", request=response.request)
        yield piece


def _within(work: Callable[[], T], seconds: float) -> T:
    """The result of the work in its own thread; TimeoutError if it takes longer.

    A thread whose work has no end stays until the process ends: Python cannot stop it. It reads one piece at most.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=do, name="ragauge-mlflow", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise TimeoutError
    return found[0]


@functools.cache
def _pools() -> dict[str, Any]:
    """Connection pools that do not read the rest of an answer, which may be endless, before the next request."""
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    def closing(connection_class: Any) -> Any:
        class Closing(connection_class):  # type: ignore[misc]
            def getresponse(self) -> Any:
                response = super().getresponse()
                response.drain_conn = response.close
                return response

        return Closing

    class Plain(HTTPConnectionPool):
        ConnectionCls = closing(HTTPConnection)

    class Secure(HTTPSConnectionPool):
        ConnectionCls = closing(HTTPSConnection)

    return {"http": Plain, "https": Secure}
