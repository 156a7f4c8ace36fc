"""A Python function in place of a retriever or a chat model: `retriever=function`, `llm=function`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.checks import require, require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.loading import locate
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import BringsTexts, TopicsFailed
from ragauge.contract.usage import Usage
from ragauge.contract.visible import is_blank
from ragauge.llms.replies import Received
from ragauge.plugins.service.contexts import as_frames
from ragauge.plugins.service.response import Context
from ragauge.retrieval.retrievers.ranking import say_cut

log = logging.getLogger(__name__)


@option("retriever/function")
class FunctionRetriever(BringsTexts):
    """Asks a function for the contexts of each question: it returns a list of texts or docnos, best first.

    An entry is one of: a text; the docno of a document or a chunk of the dataset; (docno, score); a mapping with
    `text`, `docno`, `score`; a Document of LangChain. Texts need not be in the corpus. A topic for which the function
    raises has no contexts, is counted, and is asked again by a rerun.
    function: `_target_`, the function's dotted path.   top_k: entries kept per topic.
    call: a name of the call of `ragauge.run` that gave the function; each call searches again. null: results are
        stored by the configuration and the code of the function's package.
    """

    component = "function"
    counts = ("retriever_failed",)

    function: Mapping[str, Any]
    top_k: int = CONF
    call: str | None = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        named = isinstance(self.function, Mapping) and set(self.function) == {"_target_"}
        require("retriever.function", self.function, named, "a mapping with _target_, the dotted path of a function")

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run`, and [docno, text] of texts that are no chunks; one call per topic.

        DataError for any other value, and where the function raised for every topic. Raises TopicsFailed with both
        where it raised for some.
        """
        function = locate("retriever.function", self.function["_target_"])
        name = str(self.function["_target_"]).rpartition(".")[2]
        known = set(chunks["docno"]) | set(chunks["parent"])
        found: list[list[Context]] = []
        failed: list[str] = []
        with progress(len(topics), f"retrieving by {name}", "topic") as bar:
            for qid, query in zip(topics["qid"], topics["query"], strict=True):
                try:
                    hits = function(query)
                except Exception as error:
                    why = f"{name}: topic {qid!r}: {type(error).__name__}: {error}"
                    log.log(logging.DEBUG if failed else logging.WARNING, "%s", why)
                    failed.append(qid)
                    if len(failed) == len(topics):
                        raise DataError(f"{why}; so for every topic") from error
                    hits = []
                found.append(_contexts(f"{name}: topic {qid!r}", hits, known))
                bar.update()
        say_cut(name, list(map(len, found)), self.top_k)
        found = [contexts[: self.top_k] for contexts in found]
        tools.count("retriever_failed", len(failed))
        run, texts = as_frames(topics["qid"].tolist(), found, chunks)
        if failed:
            raise TopicsFailed(run, texts, failed)
        return run, texts


def _contexts(where: str, hits: Any, known: set[str]) -> list[Context]:
    if isinstance(hits, (str, Mapping)) or not isinstance(hits, Sequence):
        raise DataError(f"{where}: returned a {type(hits).__name__}; allowed is a list of texts or docnos, best first")
    return [_context(f"{where}: entry {number}", hit, known) for number, hit in enumerate(hits, 1)]


def _context(where: str, hit: Any, known: set[str]) -> Context:
    text = docno = score = None
    if isinstance(hit, str):
        text, docno = (None, hit) if hit in known else (hit, None)
    elif isinstance(hit, tuple) and len(hit) == 2:
        docno, score = hit
    elif isinstance(hit, Mapping):
        text, docno, score = (hit.get(name) for name in ("text", "docno", "score"))
    elif hasattr(hit, "page_content"):
        text, docno = hit.page_content, hit.metadata.get("docno")
    texts = all(one is None or (isinstance(one, str) and not is_blank(one)) for one in (text, docno))
    try:
        score = None if score is None else float(score)
    except (TypeError, ValueError):
        texts = False
    if not texts or (text is None and docno is None):
        raise DataError(
            f"{where}: {hit!r:.80} is none of a text, a docno, (docno, score), a mapping with text or docno, and a "
            "Document of LangChain"
        )
    return Context(text, docno, score)


class FunctionChat:
    """A function of the prompt that returns the reply, as `ragauge.llms.calls` asks chat models.

    function: its dotted path.   model: its name, by which replies are kept: another model wants another name.
    code: a digest of the function's source; replies of an earlier version are not reused.
    """

    def __init__(self, function: str, model: str, code: str | None = None) -> None:
        self._function, self._model = function, model

    async def ainvoke(self, messages: Sequence[tuple[str, str]]) -> Received:
        """The function's reply to the last message; runs it in a thread, and counts an exception as a failed attempt.

        Tokens are estimates, of 4 characters each.
        """
        prompt = messages[-1][1]
        reply = await asyncio.to_thread(locate("llm.chat.function", self._function), prompt)
        refused = None
        if not isinstance(reply, str):
            reply, refused = "", f"{self._model} returned a {type(reply).__name__}, and no text"
        elif is_blank(reply):
            refused = "an empty reply"
        return Received(reply, "stop", Usage(-(-len(prompt) // 4), -(-len(reply) // 4)), refused)
