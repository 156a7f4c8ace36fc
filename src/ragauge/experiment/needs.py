"""Estimates a job's unanswered requests to LLMs and judges, without a call.

It looks into the store and the ledger. Stored runs, contexts, answers and verdicts need nothing; known contexts and
answers give the real prompts. Unknown ones are replaced by stand-ins of their length, which are marked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.answering import ASKED, AsksForAnswers
from ragauge.contract.component import KeepsReplies
from ragauge.contract.frames import batches_of
from ragauge.contract.measures import AnswerMeasure
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.topics import scorable
from ragauge.experiment.measure_needs import of_measures, untold
from ragauge.experiment.stages.answering import AnswerVaried
from ragauge.llms.chat_use import Unasked

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

NEEDS_FILE = "needs.parquet"  # in the folder of a job of a dry run
NEEDS_OF_ALL_FILE = "needs_of_all.parquet"  # beside it where a sample is answered: the needs of all topics
_TOKEN = "word "  # stands for a token of a context that is not known yet
_COLUMNS = ["who", "key", "known", "exact", "prompt_tokens", "completion_tokens", "cost_usd"]


def needs(
    pipeline: Pipeline,
    *,
    judging: bool = True,
    seed: int = 0,
    further: Iterable[Callable[[pd.DataFrame | None], list[pd.DataFrame]]] = (),
) -> pd.DataFrame:
    """The job's requests, one per row: who, key, known, exact, prompt and completion tokens, cost_usd.

    who: rewriter, retriever, reranker, compressor, llm, answers.<name> or judge. key: equal for equal
    requests, in all jobs. known: answered already. exact: False where a stand-in is counted. Tokens
    (estimates) and US dollars are those of asking. Retrieval is run, since contexts decide the prompts,
    unless an LLM has to be asked for it. `judging=False` leaves the judge out. further: give the requests of
    findings, of the answers as far as they are known (None where no LLM is chosen).
    """
    found, answers = before_judging(pipeline)
    found += _of_measures(pipeline, answers, seed)
    if judging and answers is not None and pipeline.components.judge.kind == "chat":
        found.append(of_judge(pipeline, answers))
    for more in further:
        found += more(answers)
    for (_, repeat), part in list(pipeline.parts.items())[1:]:
        found += _of_part(part, bool(repeat), judging, seed)
    return gathered(found)


def _of_part(part: Pipeline, same_answer: bool, judging: bool, seed: int) -> list[pd.DataFrame]:
    """The needs of another answer to each topic, or of another verdict on the same one (`llm.repeat`)."""
    asked, answers = before_judging(part)
    found = [] if same_answer else [rows for rows in asked if rows["who"].eq("llm").all()]
    if not same_answer:
        found += _of_measures(part, answers, seed, again=False)
    if judging and answers is not None and part.components.judge.kind == "chat":
        verdicts = of_judge(part, answers)
        found.append(verdicts[~verdicts["again"].astype(bool)] if "again" in verdicts else verdicts)
    return found


def gathered(found: list[pd.DataFrame]) -> pd.DataFrame:
    """The concatenated needs in their usual columns."""
    return pd.concat(found, ignore_index=True)[_COLUMNS] if found else pd.DataFrame(columns=_COLUMNS)


def before_judging(pipeline: Pipeline) -> tuple[list[pd.DataFrame], pd.DataFrame | None]:
    """The needs before the judge, and the answers, missing where an LLM must be asked.

    The answers are None without an LLM.
    """
    topics, store = pipeline.frame("topics"), pipeline.store
    llm = pipeline.components.llm
    found: list[pd.DataFrame] = []
    if "chat" in pipeline.components.measure.uses:
        found.append(untold("measure", len(scorable(pipeline.frame("evidence"), topics))))
    contexts = None
    try:
        contexts = pipeline.contexts_from_ledger()
    except Unasked as unasked:
        chat = llm if unasked.chat is None else unasked.chat
        if isinstance(chat, KeepsReplies):
            found.append(chat.needs_of(unasked.prompts, store).assign(who=unasked.who))
            if unasked.later:
                found.append(stand_ins(chat.needs_of(unasked.later, store)).assign(who=unasked.who))
        else:
            found.append(untold(unasked.who, len(unasked.prompts) + len(unasked.later)))
    found += _of_varied(pipeline, contexts is not None)
    if llm.kind == "none":
        return found, None
    if llm.kind not in ASKED:
        known = pipeline.answers if contexts is not None else _unanswered(pipeline)
        return found, known
    if not isinstance(llm, AsksForAnswers):
        found.append(untold("llm", len(pipeline.to_answer(topics))))
        return found, _unanswered(pipeline)
    if contexts is None:
        unknown = unknown_contexts(pipeline)
        asked = llm.needs_of(llm.prompts(topics, unknown), store)
        if llm.takes_context:
            found.append(stand_ins(asked).assign(who="llm"))
            return found, _unanswered(pipeline)
        found.append(asked.assign(who="llm"))  # a service that retrieves by itself
        return found, llm.known_answers(topics, unknown, store)
    asked = llm.needs_of(llm.prompts(topics, contexts), store)
    stored = store.find(pipeline.key("answers"))
    if stored is not None:
        found.append(asked.assign(who="llm", known=True))
        return found, stored.frame("answers")
    found.append(asked.assign(who="llm"))
    return found, llm.known_answers(topics, contexts, store)


def _of_measures(pipeline: Pipeline, answers: pd.DataFrame | None, seed: int, again: bool = True) -> list[pd.DataFrame]:
    """The needs of the answer measures; unknown `answers` are missing."""
    if not any("chat" in measure.uses for measure in pipeline.components.answers.values()):
        return []
    try:
        contexts = pipeline.contexts_from_ledger()
    except Unasked:
        contexts = None
    kind = pipeline.components.llm.kind
    if answers is None:
        answers = _unanswered(pipeline).assign(status="none")
    asked_for = kind in ASKED or "status" not in answers
    return of_measures(pipeline, answers, contexts, asked_for, seed, again)


def _of_varied(pipeline: Pipeline, found: bool) -> list[pd.DataFrame]:
    """The needs of measures with answers from other contexts, for contexts that were `found`."""
    llm, judge, topics, store = (
        pipeline.components.llm, pipeline.components.judge, pipeline.frame("topics"), pipeline.store
    )  # fmt: skip
    asked = []
    for stage in pipeline.stages:
        if not isinstance(stage, AnswerVaried):
            continue
        who = f"answers.{stage.key}"
        judged = stage.measure.judged and judge.kind == "chat"
        if not found or (llm.kind in ASKED and not isinstance(llm, AsksForAnswers)):
            asked += _guessed_of_varied(pipeline, stage.measure, who)
            asked += [untold(f"{who}, judge", len(pipeline.to_answer(topics)))] if judged else []
            continue
        contexts = pipeline.frame(stage.contexts)
        stored = store.find(pipeline.key(stage.label)) is not None
        for variant, rows in contexts.groupby("variant"):
            own = rows.reset_index(drop=True)
            answers = own.assign(answer=pd.array([None] * len(own), dtype="str"))
            if isinstance(llm, AsksForAnswers):
                told = llm.needs_of(llm.prompts(topics, own), store)
                asked.append(told.assign(who=who, known=told["known"] | stored))
                answers = llm.known_answers(topics, own, store)
            if not judged:
                continue
            asked_about = stage.measure.to_judge(answers.assign(variant=variant))
            names = uuid.uuid4().hex + asked_about["variant"].astype(str)
            candidates = asked_about[["qid", "answer"]].assign(candidate=names)
            told = judge.needs(topics, pipeline.frame("evidence"), candidates, pipeline.tools)
            of_judge = f"{who}, judge"
            asked.append(untold(of_judge, len(own)) if told is None else told.assign(who=of_judge))
    return asked


def _guessed_of_varied(pipeline: Pipeline, measure: AnswerMeasure, who: str) -> list[pd.DataFrame]:
    """Stand-ins for answers from single texts that are not found yet; `untold` otherwise."""
    llm, retriever, topics = pipeline.components.llm, pipeline.components.retriever, pipeline.frame("topics")
    depth = measure.depth
    # Who brings the texts would be asked for them.
    if depth is None or not isinstance(llm, AsksForAnswers) or isinstance(retriever, BringsTexts):
        return [untold(who, len(pipeline.to_answer(topics)))]
    first = next(batches_of(pipeline.rows("chunks")))["text"].iloc[0]
    alone = unknown_contexts(pipeline).assign(text=first)
    told = llm.needs_of(llm.prompts(topics, alone), pipeline.store)
    top_k = retriever.top_k
    return [stand_ins(told).assign(who=who) for _ in range(depth if top_k is None else min(depth, top_k))]


def of_judge(pipeline: Pipeline, answers: pd.DataFrame) -> pd.DataFrame:
    """The needs of one job's judge; unknown answers are missing."""
    judge = pipeline.components.judge
    topics, evidence = pipeline.frame("topics"), pipeline.frame("evidence")
    candidates = to_ask(pipeline, answers).assign(candidate=uuid.uuid4().hex)
    # Where jobs are judged together the judge is asked again about all of them, at the end.
    repeat = judge.mode != "batch"
    told = judge.needs(topics, evidence, candidates, pipeline.tools, repeat=repeat)
    shown = pipeline.to_judge(answers)
    if told is None:
        return untold("judge", len(shown))
    asked = told.assign(who="judge")
    # Verdicts are stored where answers are missing, too, but those will be asked for again.
    complete = pipeline.components.llm.kind not in ASKED or shown["answer"].notna().all()
    if complete and pipeline.store.find(pipeline.key("verdicts", asked_answers=shown)) is not None:
        # What judges again is in no stage: the ledger alone knows whether it was asked.
        asked["known"] |= ~asked.get("again", pd.Series(False, index=asked.index)).astype(bool)
    return asked


def _unanswered(pipeline: Pipeline) -> pd.DataFrame:
    """An empty answer row for every topic to be answered."""
    qids = pipeline.to_answer(pipeline.frame("topics"))["qid"]
    answers = pd.array([None] * len(qids), "str")
    return pd.DataFrame({"qid": qids, "n_tokens": pipeline.n_tokens, "answer": answers})


def unknown_contexts(pipeline: Pipeline, topics: pd.DataFrame | None = None) -> pd.DataFrame:
    """Stand-in contexts of the right length for these topics, by default those to be answered."""
    text = _TOKEN * pipeline.n_tokens
    qids = (pipeline.to_answer(pipeline.frame("topics")) if topics is None else topics)["qid"]
    return pd.DataFrame({"qid": qids, "n_tokens": pipeline.n_tokens, "text": text})


def stand_ins(asked: pd.DataFrame) -> pd.DataFrame:
    """Needs of stand-in requests, which are unanswered and not shared with other jobs."""
    keys = [uuid.uuid4().hex for _ in range(len(asked))]
    return asked.assign(key=keys, known=False, exact=False)


def to_ask(pipeline: Pipeline, answers: pd.DataFrame) -> pd.DataFrame:
    """The answers to judge [qid, answer], missing where a chat model must be asked."""
    asked = pipeline.to_judge(answers)[["qid", "answer"]]
    # An answer that another part could not give is not asked for again, and not judged; without a status
    # it is not known yet.
    unknown = pipeline.components.llm.kind in ASKED or "status" not in answers
    return asked if unknown else asked.dropna(subset="answer")


def added_up(requests: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Requests by who asks: {calls, calls_cached, calls_shared, calls_guessed, prompt_tokens, ...}.

    calls: distinct requests without an answer; calls_guessed: the stand-ins among them; calls_cached: distinct requests
    with an answer; calls_shared: rows whose request is counted further up, mostly of another job. prompt_tokens,
    completion_tokens, cost_usd: their sums over calls. {} of who cannot say what asking would need.
    """
    sums: dict[str, dict[str, float]] = {}
    requests = requests.reset_index(drop=True)
    first = requests.assign(known=requests["known"].astype(bool)).drop_duplicates(["key", "known"])
    for who, rows in requests.groupby("who", sort=False):
        if rows["prompt_tokens"].isna().any():
            sums[str(who)] = {}
            continue
        own = first.loc[first.index.intersection(rows.index)]
        todo = own[~own["known"]]
        sums[str(who)] = {
            "calls": len(todo),
            "calls_cached": len(own) - len(todo),
            "calls_shared": len(rows) - len(own),
            "calls_guessed": int((~todo["exact"].astype(bool)).sum()),
            "prompt_tokens": int(todo["prompt_tokens"].sum()),
            "completion_tokens": int(todo["completion_tokens"].sum()),
            "cost_usd": float(todo["cost_usd"].sum()),
        }
    return sums


def describe_needs(sums: Mapping[str, Mapping[str, float]]) -> str:
    """One line: calls, tokens and money."""
    if not sums:
        return "no LLM calls"
    return "; ".join(
        f"{who}: cannot tell before it is asked"
        if not n
        else f"{who}: {n['calls']:,.0f} calls ({n['calls_cached']:,.0f} paid before{_shared(n)}), "
        f"about {n['prompt_tokens']:,.0f} + {n['completion_tokens']:,.0f} tokens, {n['cost_usd']:,.2f} USD"
        for who, n in sums.items()
    )


def _shared(n: Mapping[str, float]) -> str:
    shared = f", {n['calls_shared']:,.0f} shared with others" if n["calls_shared"] else ""
    return shared + (f"; {n['calls_guessed']:,.0f} are estimates" if n["calls_guessed"] else "")
