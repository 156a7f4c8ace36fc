"""What a chat model writes for questions: its replies read, those that failed told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ragauge.contract.errors import MissingError
from ragauge.contract.protocols import ChatModel, Workplace
from ragauge.retrieval.rewriters._queries import distinct

log = logging.getLogger(__name__)


def written_by_llm(
    chat: ChatModel,
    prompts: Sequence[str],
    parse: Callable[[str], list[str]],
    store: Workplace,
    who: str,
    what: str,
    noun: str = "queries",
) -> list[list[str]]:
    """The texts in the reply to each prompt, one request a topic; none where it failed or held none.

    parse: the texts of a reply. what: the name under which the ledger counts the requests. A warning, which
    names `who`, says how many topics got no text; MissingError where none got any.
    """
    readers = [lambda reply: parse(reply.text or "") or None] * len(prompts)
    replies = chat.ask(prompts, store, what, readers=readers)
    found = [parse(reply.text or "") for reply in replies]
    failed = sum(not texts for texts in found)
    if failed:
        error = next((r.error for r in replies if r.error), f"no {noun} in the replies")
        if failed == len(found):
            raise MissingError(f"{who}: no {noun} from the LLM for {failed} of {failed} topics ({error})")
        log.warning("%s: for %d of %d topics the question alone is searched (%s)", who, failed, len(found), error)
    return found


def with_question(question: str, texts: list[str], at_most: int, question_first: bool) -> list[str]:
    """What is searched for: at most so many of the texts, behind the question if it is to be first.

    Where there are no texts it is the question.
    """
    if question_first or not texts:
        return [question, *distinct(texts[:at_most], but=question)]
    return texts[:at_most]
