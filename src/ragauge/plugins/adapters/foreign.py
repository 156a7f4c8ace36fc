"""Builds components of other libraries, and checks them and their results.

Errors name the config key or the component, the topic and the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.loading import build

_COLUMNS = ("qid", "query", "docno", "text", "title", "score", "rank")  # of PyTerrier's frames
_TEXT_OF = "text_docno"  # whose text a row of a pipeline has


def pyterrier_transformer(key: str, spec: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The PyTerrier transformer of a mapping with `_target_`; ConfigError, with `key`, if it makes none.

    given: arguments that are passed on where the target's signature has them.
    """
    made = build(key, spec, given)
    if not callable(getattr(made, "transform", None)):
        what = type(made).__name__
        raise ConfigError(f"{key}: {spec['_target_']} made a {what}, which is no PyTerrier transformer")
    return made


def document_compressor(key: str, spec: Mapping[str, Any]) -> Any:
    """The LangChain BaseDocumentCompressor of a mapping with `_target_`; ConfigError if it makes none."""
    from langchain_core.documents import BaseDocumentCompressor

    made = build(key, spec, {})
    if not isinstance(made, BaseDocumentCompressor):
        raise ConfigError(
            f"{key}: {spec['_target_']} made a {type(made).__name__}, which is no LangChain BaseDocumentCompressor"
        )
    return made


def as_documents(rows: pd.DataFrame) -> list[Any]:
    """LangChain Documents of rows [docno, text], the docno in their metadata."""
    from langchain_core.documents import Document

    return [
        Document(page_content=text, metadata={"docno": docno})
        for docno, text in zip(rows["docno"], rows["text"], strict=True)
    ]


def transformed(name: str, pipeline: Callable[..., Any], rows: pd.DataFrame) -> pd.DataFrame:
    """A PyTerrier pipeline's run for topics, or for a run, with qid, docno and score.

    DataError for a stage that misses columns, for no frame, and for a run without these columns.
    """
    from pyterrier.validate import InputValidationError

    try:
        found = pipeline(rows)
    except InputValidationError as error:
        misses = " or ".join(", ".join(mode.missing_columns) for mode in error.modes)
        raise DataError(f"{name}: column {misses} is missing for a stage of it: {error.args[0]}") from error
    except KeyError as error:
        if error.args[:1] not in [(column,) for column in _COLUMNS]:
            raise
        raise DataError(f"{name}: column {error.args[0]} is missing for a stage of it") from error
    if not isinstance(found, pd.DataFrame):
        raise DataError(f"{name}: returned a {type(found).__name__}, not a frame")
    for column in ("qid", "docno", "score"):
        if column not in found.columns:
            has = ", ".join(map(str, found.columns))
            raise DataError(f"{name}: column {column} is missing from its run; it has {has}")
    return found


class WithTexts:
    """A composed PyTerrier pipeline; its stages get the chunks' texts once one of them asks for them.

    A retriever finds docnos; a re-ranker behind it mostly needs the column text. `chunks` has docno and text.
    """

    def __init__(self, pipeline: Callable[..., Any], chunks: pd.DataFrame) -> None:
        self._pipeline = pipeline
        self._chunks = chunks

    def __call__(self, rows: pd.DataFrame) -> Any:
        """The result of the pipeline for the rows; raises the pipeline's own errors."""
        import pyterrier as pt
        from pyterrier.validate import InputValidationError

        try:
            return self._pipeline(rows)
        except (InputValidationError, KeyError) as error:
            modes = getattr(error, "modes", None)
            asked = [m.missing_columns for m in modes] if modes is not None else [error.args[:1]]
            if not isinstance(self._pipeline, pt.Compose) or not any("text" in missing for missing in asked):
                raise
        first, *others = self._pipeline
        texts = pt.apply.generic(_TextOf(self._chunks))
        self._pipeline = pt.Compose(first, *(stage for other in others for stage in (texts, other)))
        return self._pipeline(rows)


class _TextOf:
    """Adds the column text to a run; a row whose docno a stage changed gets the new chunk's text."""

    def __init__(self, chunks: pd.DataFrame) -> None:
        self._texts = chunks.set_index(chunks["docno"].astype("str"))["text"]

    def __call__(self, run: pd.DataFrame) -> pd.DataFrame:
        if "docno" not in run or ("text" in run and _TEXT_OF not in run):
            return run
        docno = run["docno"].astype("str")
        text = docno.map(self._texts).astype(object)
        if "text" in run:
            text = run["text"].astype(object).where(run[_TEXT_OF].eq(docno), text)
        return run.assign(**{"text": text, _TEXT_OF: docno})


def check_hits(name: str, qids: pd.Series, docnos: pd.Series, score: np.ndarray) -> None:
    """DataError for a non-finite score, and for a duplicate hit."""
    twice = pd.DataFrame({"qid": qids, "docno": docnos}).duplicated().to_numpy()
    for wrong, what in ((~np.isfinite(score), "has no finite score"), (twice, "is returned twice")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(f"{name}: qid={qids.iloc[row]!r}, docno={docnos.iloc[row]!r} {what}")


def docno_of(name: object, document: Any) -> str:
    """The docno of a returned LangChain Document; DataError if it has none."""
    docno = document.metadata.get("docno")
    if docno is None:
        keys = ", ".join(document.metadata) or "nothing"
        raise DataError(f"{name}: a returned Document has no metadata['docno']; its metadata has {keys}")
    return str(docno)
