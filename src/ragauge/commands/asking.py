"""Asks the user's app the questions of rows without an answer (`ragauge.evaluate(rows, app=f)`)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragauge.commands.rows import nested_too_deep, plain
from ragauge.contract.errors import DataError
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.datasets import BadRow
from ragauge.datasets.recordings import NAMES, opened_row, recorded_row

log = logging.getLogger(__name__)

_ALLOWED = "allowed are the answer, (answer, contexts) with a list of texts, and a dict with answer, contexts, ..."
_LONGEST = 1_000  # characters of an exception's text that a row keeps
_OTHERS = [path for name in ("stdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))]


def ask_app(app: Callable[[str], Any], rows: list[dict[str, Any]]) -> str | None:
    """Asks the app the questions of rows without an answer, one by one, and completes these rows in place.

    An exception of the app becomes the row's `error`. Returns a message where every row failed, else None. DataError
    for an app that takes other arguments, and for a row without a question. DataError, too, where the app's first value
    cannot be read; a later one becomes its row's error.
    """
    _require_one_argument(app)
    questions = [_question(row, number) for number, row in enumerate(rows, 1)]
    asked = [place for place, row in enumerate(rows) if _first(row, NAMES["answer"]) is None]
    if not asked:
        log.warning(
            "the app was not asked: every sample has an answer already; a reference answer is called 'reference'"
        )
        return None
    failed: list[str] = []
    with progress(len(asked), "asking the app", "row") as bar, _waited_for() as result_of:
        for place in asked:
            # An error of an earlier call is gone.
            row = {name: value for name, value in rows[place].items() if name not in NAMES["error"]}
            try:
                given = result_of(app(questions[place]))
            except Exception as error:
                failed.append(_told(error))
                rows[place] = {**row, "error": failed[-1]}
            else:
                try:
                    rows[place] = _answered(row, given)
                except BadRow as bad:
                    what = f"the app returned {_kind(given)}: {bad}"
                    if place == asked[0]:
                        raise DataError(f"sample {place + 1}: {what}; {_ALLOWED}") from None
                    failed.append(what)
                    rows[place] = {**row, "error": what}
                else:
                    if all(rows[place].get(name) is None for name in NAMES["answer"]):
                        failed.append(str(rows[place].get("error")))
            bar.update()
    if not failed:
        return None
    line = f"the app failed for {len(failed):,} of {len(asked):,} rows; the first: {failed[0]}"
    if len(failed) == len(rows):
        return line
    log.warning("%s", visible(line, one_line=True))
    return None


def _require_one_argument(app: Callable[[str], Any]) -> None:
    try:
        inspect.signature(app).bind("question")
    except TypeError as error:
        raise DataError(f"app: it is called with the question alone: {error}") from None
    except ValueError:  # written in C
        return


def _question(row: Mapping[str, Any], number: int) -> str:
    question = _first(row, NAMES["question"])
    if nested_too_deep(question):
        raise DataError(f"sample {number}: its question is nested too deep")
    if not isinstance(question, str):
        raise DataError(f"sample {number} has no question; allowed names are {', '.join(NAMES['question'])}")
    return question


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first present, non-blank value of these names, or None."""
    held = opened_row(row)
    values = (value if nested_too_deep(value) else plain(value) for value in map(held.get, names))
    return next((one for one in values if one is not None and one != ""), None)


@contextmanager
def _waited_for() -> Iterator[Callable[[Any], Any]]:
    """A function that returns an awaitable's result, and any other value unchanged.

    All are awaited in one loop of a thread of its own: clients belong to their loop, and a notebook's is running.
    """
    loops: list[asyncio.AbstractEventLoop] = []

    def result_of(value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        if not loops:
            loops.append(asyncio.new_event_loop())
            threading.Thread(target=loops[0].run_forever, daemon=True).start()

        async def awaited() -> Any:
            return await value

        future = asyncio.run_coroutine_threadsafe(awaited(), loops[0])
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    try:
        yield result_of
    finally:
        for loop in loops:
            loop.call_soon_threadsafe(loop.stop)


def _answered(row: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The row completed by the app's return value; BadRow if a row cannot hold it."""
    said = getattr(given, "content", None)
    if isinstance(said, str):  # a message of LangChain
        given = said
    try:
        if isinstance(given, Mapping):
            found = dict(opened_row({"output": plain(given)}))
        else:
            answer, contexts = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
            contexts = [contexts] if isinstance(contexts, str) else contexts
            found = {"response": plain(answer), "retrieved_contexts": plain(contexts)}
    except RecursionError:
        raise BadRow("it is nested too deep") from None
    found = {name: value for name, value in found.items() if value is not None}
    read = recorded_row(found, "", "")
    for check in (lambda: read.text("answer"), lambda: read.text("error"), lambda: read.texts("contexts")):
        check()
    if not read.values.keys() & {"answer", "error"} and "contexts" not in read.values:
        raise BadRow(f"its keys are {', '.join(map(repr, found))}" if found else "it holds no answer")
    if not read.values.keys() & {"answer", "error"}:
        found["error"] = "the app returned no answer"
    return {**row, **found}


def _kind(given: Any) -> str:
    if isinstance(given, (tuple, list)):
        return f"a {type(given).__name__} of {', '.join(type(one).__name__ for one in given[:3]) or 'nothing'}"
    return "None" if given is None else f"a {type(given).__name__}"


def _told(error: Exception) -> str:
    """An exception's type and text, and the last line of the user's code in its traceback."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be shown"
    frames: Sequence[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if not frame.filename.startswith((*_OTHERS, "<frozen"))] or list(frames)
    at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    text = visible(redact(text), one_line=True)[:_LONGEST]
    return f"{type(error).__name__}{': ' if text else ''}{text}{at}"
