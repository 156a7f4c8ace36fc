"""The filters that ask a chat model, and the filter that searches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import OK, json_of, quoted, truth_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TRUTH, fields
from ragauge.measures.tokens import normalised
from ragauge.plugins.synthesis.asking import CLOSED_BOOK, PROMPTS, Asker
from ragauge.plugins.synthesis.drafts import FAILED, LANGUAGE, NOT_APPLICABLE, NOT_ASKED, PASSED, UNREADABLE, Draft
from ragauge.plugins.synthesis.settings import Filters
from ragauge.texts.languages import AUTO, language_of

# Frame [qid, query] in, the chunks found out: [qid, docno (the document's), rank (from 0), text].
Search = Callable[[pd.DataFrame], pd.DataFrame]
PASSAGES = 3  # of the retriever, in which what is to be unanswerable is looked for
_PASSAGE_CHARS = 2000
_WORDS_WITH_A_LANGUAGE = 6  # of an answer, at least: a shorter one may be a name from anywhere
_UNKNOWN = ("unknown", "i dont know", "do not know", "not known")


def language(drafts: Sequence[Draft], wanted: str) -> None:
    """Rejects drafts whose question, or answer of several words, is in an unwanted language.

    wanted: a language; auto: that of the draft's documents; english: none is looked at. A text whose language is not
    recognised passes.
    """
    for draft in drafts if wanted != "english" else ():
        assert draft.written is not None
        own = language_of(" ".join(draft.shown)) if wanted == AUTO else wanted
        answer = draft.written.answer or ""
        texts = [draft.question, *([answer] if len(answer.split()) >= _WORDS_WITH_A_LANGUAGE else [])]
        if any(found not in (own, None) for found in map(language_of, texts)) and own is not None:
            draft.reject(LANGUAGE)


def round_trip(drafts: Sequence[Draft], search: Search | None, filters: Filters) -> dict[str, list[str]]:
    """Records the rank at which the retriever finds each draft's documents; rejects if asked to.

    The rank, from 1, is that of the last of them among the documents found; missing where one is not found.
    Returns the best passages of what is to be unanswerable, by qid, which a filter looks through.
    """
    if search is None or not drafts:
        for draft in drafts:
            draft.results["round_trip"] = NOT_ASKED
        return {}
    asked = pd.DataFrame({"qid": [str(i) for i in range(len(drafts))], "query": [d.question for d in drafts]})
    hits = {str(qid): rows.sort_values("rank") for qid, rows in search(asked.astype("str")).groupby("qid")}
    passages = {}
    for i, draft in enumerate(drafts):
        found = hits.get(str(i))
        in_order = [] if found is None else list(dict.fromkeys(found["docno"]))
        ranks = [in_order.index(docno) + 1 if docno in in_order else None for docno in draft.unit.docnos]
        known = [rank for rank in ranks if rank is not None]
        rank = max(known) if len(known) == len(ranks) else None
        draft.results["round_trip_rank"] = rank
        if draft.unanswerable:
            draft.results["round_trip"] = NOT_APPLICABLE
            passages[draft.qid] = [] if found is None else found["text"].head(PASSAGES).tolist()
        elif rank is not None and rank <= filters.round_trip_top_k:
            draft.results["round_trip"] = PASSED
        elif filters.round_trip == "filter":
            draft.reject("round_trip")
        else:
            draft.results["round_trip"] = "not found, recorded"
    return passages


def follows(drafts: Sequence[Draft], ask: Asker) -> None:
    """Rejects drafts whose evidence does not imply their answer, by one request each."""
    prompt = load_prompt(None, "follows.txt", ("question", "answer", "evidence"), package=PROMPTS)

    def prompt_of(draft: Draft) -> str:
        evidence = json.dumps([span.text for span in draft.spans], ensure_ascii=False)
        assert draft.written is not None
        answer = quoted(str(draft.written.answer))
        return fill(prompt, question=quoted(draft.question), answer=answer, evidence=evidence)

    _verdicts(drafts, "follows", "follows", prompt_of, True, ask)


def not_answered(drafts: Sequence[Draft], passages: dict[str, list[str]], ask: Asker) -> None:
    """Rejects drafts meant to be unanswerable that their document or the retriever's hits answer."""
    prompt = load_prompt(None, "answered.txt", ("question", "passages"), package=PROMPTS)

    def prompt_of(draft: Draft) -> str:
        texts = [*draft.shown, *(text[:_PASSAGE_CHARS] for text in passages.get(draft.qid, ()))]
        listed = json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False)
        return fill(prompt, question=quoted(draft.question), passages=listed)

    _verdicts(drafts, "answerable", "answered", prompt_of, False, ask)


def _verdicts(
    drafts: Sequence[Draft],
    reason: str,
    key: str,
    prompt_of: Callable[[Draft], str],
    wanted: bool,
    ask: Asker,
) -> None:
    """Asks for {key: true or false}; rejects, as `reason`, drafts with another value than wanted."""
    prompts = {draft.number: prompt_of(draft) for draft in drafts}
    found = ask(reason, dict.fromkeys(prompts.values(), _flag(key)), dict.fromkeys(prompts.values(), wanted))
    for draft in drafts:
        reply = found[prompts[draft.number]]
        if reply.status != OK:
            _not_known(draft, reason, reply.status, reply.raw)
        elif reply.value is wanted:
            draft.results[reason] = PASSED
        else:
            draft.reject(reason)


def closed_book(drafts: Sequence[Draft], ask: Asker, filters: Filters) -> None:
    """Rejects drafts that the llm answers without documents; skips unanswerable ones."""
    asked = [draft for draft in drafts if not draft.unanswerable]
    for draft in drafts:
        if draft.unanswerable:
            draft.results["closed_book"] = NOT_APPLICABLE
    prompt = load_prompt(None, "closed_book.txt", ("question",), package=PROMPTS)
    prompts = {draft.number: fill(prompt, question=draft.question) for draft in asked}
    found = ask(CLOSED_BOOK, dict.fromkeys(prompts.values(), str.strip), dict.fromkeys(prompts.values(), "word"))
    open_ones = []
    for draft in asked:
        reply = found[prompts[draft.number]]
        said = reply.value if reply.value is not None else reply.raw  # a reply that was cut is one, too
        if reply.status == FAILED or said is None:
            _not_known(draft, "closed_book", reply.status, reply.raw)
            continue
        assert draft.written is not None
        assert draft.written.answer is not None
        draft.results["closed_book_reply"] = said
        f1 = _token_f1(said, draft.written.answer)
        draft.results["closed_book_f1"] = round(f1, 4)
        if f1 == 1 or (filters.closed_book == "tokens" and _known(said, draft.written.answer, f1, filters)):
            draft.reject("closed_book")
        elif filters.closed_book == "tokens" or _says_unknown(said):
            draft.results["closed_book"] = PASSED
        else:
            open_ones.append(draft)
    _compare(open_ones, ask)


def _compare(drafts: Sequence[Draft], ask: Asker) -> None:
    """Rejects drafts whose closed-book answer is equivalent by the evaluator."""
    prompt = load_prompt(None, "same_answer.txt", ("question", "first", "second"), package=PROMPTS)
    prompts = {}
    for draft in drafts:
        assert draft.written is not None
        first, second = quoted(str(draft.written.answer)), quoted(draft.results["closed_book_reply"])
        prompts[draft.number] = fill(prompt, question=quoted(draft.question), first=first, second=second)
    found = ask("same answer", dict.fromkeys(prompts.values(), _flag("same")), dict.fromkeys(prompts.values(), False))
    for draft in drafts:
        reply = found[prompts[draft.number]]
        if reply.status != OK:
            _not_known(draft, "closed_book", reply.status, reply.raw)
        elif reply.value:
            draft.reject("closed_book")
        else:
            draft.results["closed_book"] = PASSED


def _not_known(draft: Draft, reason: str, status: str, raw: Any) -> None:
    """Rejects a draft without a verdict: as failed if a rerun asks again, else by the filter."""
    draft.reject(reason, UNREADABLE if status == UNREADABLE else FAILED)
    draft.rejected_by = reason if status == UNREADABLE else FAILED
    draft.raw = raw


def _flag(key: str) -> Callable[[str], bool | None]:
    def read(reply: str) -> bool | None:
        said = json_of(reply)
        return truth_of(said.get(key)) if isinstance(said, dict) else None

    return Structured(read, fields(**{key: TRUTH}))


def _known(said: str, answer: str, f1: float, filters: Filters) -> bool:
    """Whether a reply gives the answer: by token F1, or because it contains the answer's tokens contiguously."""
    if _says_unknown(said):
        return False
    tokens, wanted = normalised(said), normalised(answer)
    inside = any(tokens[i : i + len(wanted)] == wanted for i in range(len(tokens) - len(wanted) + 1))
    return f1 >= filters.closed_book_f1 or (bool(wanted) and inside)


def _says_unknown(said: str) -> bool:
    text = " ".join(normalised(said))
    return not text or any(text == one or text.startswith(f"{one} ") for one in _UNKNOWN)


def _token_f1(said: str, answer: str) -> float:
    """Token F1 as in SQuAD's script; 1 for two texts without tokens."""
    first, second = Counter(normalised(said)), Counter(normalised(answer))
    if not first or not second:
        return float(first == second)
    common = (first & second).total()
    return 2 * common / (first.total() + second.total())
