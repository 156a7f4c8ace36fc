"""A dry run: the requests to LLMs and judges that a job would make, without a call.

It looks into the store and the ledger, and embeds nothing: what rests on vectors that are not in the store is unknown.
Stored runs, contexts, answers and verdicts need nothing; known contexts and answers give the real prompts. Unknown ones
are replaced by stand-ins of their length, which are marked. An answer measure runs on known replies alone. It guesses
the others (for claims, the sentences of the answer), so that the requests after them are counted, too, as estimates.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.answering import ASKED, AsksForAnswers
from ragauge.contract.component import Embedder, KeepsReplies, Tools
from ragauge.contract.frames import batches_of
from ragauge.contract.measures import AnswerMeasure
from ragauge.contract.output_files import replacing
from ragauge.contract.retrieval import BringsTexts, Retriever
from ragauge.contract.stages import Read, Reads
from ragauge.contract.topics import scorable
from ragauge.contract.usage import Usage
from ragauge.experiment.measured import MeasuredJob, fitting_predictor, sample_topics, tell
from ragauge.experiment.need_sums import added_up, describe_needs, gathered, untold
from ragauge.experiment.stages.answering import AnswerVaried, MeasureAnswers
from ragauge.experiment.stages.order import question_stages
from ragauge.findings.lacking import Lacking, new_lines
from ragauge.findings.unread import UnreadTexts
from ragauge.llms.chat_use import RepeatingChat, TellingChat, Unasked
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.store.vectors import NotComputed, nothing_computed

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

NEEDS_FILE = "needs.parquet"  # in the folder of a job of a dry run
NEEDS_OF_ALL_FILE = "needs_of_all.parquet"  # beside it where a sample is answered: the needs of all topics
SALT = "measured again"  # tells the requests of measuring once more from the first ones in the ledger
_UNKNOWN = (Unasked, NotComputed)  # what a dry run does not ask, or compute
_TOKEN = "word "  # stands for a token of a text that is not known yet
_WORDS_PER_TOKEN = 0.75  # of an English text
_CHARACTERS_PER_TOKEN = 4  # of an English text


def dry_run(job: MeasuredJob) -> None:
    """Prints and records the job's needs; the end of a sweep adds those of judging together."""
    with nothing_computed():
        _dry_run(job)


def _dry_run(job: MeasuredJob) -> None:
    pipeline, record, folder, later = job.pipeline, job.record, job.folder, job.judged_later
    plan = pipeline.plan_in_words()
    for finding in (Lacking(), UnreadTexts()):
        with pipeline.without_calls(), suppress(NotComputed):
            tell(finding.show(job, finding.compute(job, {}).value, {}))
    if not later:
        with suppress(*_UNKNOWN):  # without its contexts a job's topics are a uniform sample
            sample_topics([pipeline], job.model)
    further = [partial(finding.needs, job) for finding in job.findings]
    asked = needs(pipeline, judging=not later, seed=job.seed, further=further)
    folder.path.mkdir(parents=True, exist_ok=True)
    with replacing(folder.path / NEEDS_FILE) as draft:
        asked.to_parquet(draft, index=False)
    record.status, record.needs, record.judged_later = "DRY RUN", added_up(asked), later
    print(f"{record.name:<32} {describe_needs(record.needs)}{', then the judge' if later else ''}")
    print(f"  {plan}")
    for line in new_lines(_not_computed(pipeline), record.sweep_id):
        print(f"  {line}")
    if pipeline.answered is not None:
        whole = needs(replace(pipeline, answered=None, sample=None), judging=not later, seed=job.seed)
        with replacing(folder.path / NEEDS_OF_ALL_FILE) as draft:
            whole.to_parquet(draft, index=False)
        print(f"  all {len(pipeline.frame('topics')):,} topics: {describe_needs(added_up(whole))}")


def _not_computed(pipeline: Pipeline) -> list[str]:
    """A sentence on the first stage that would run an embedder or the like; none without one."""
    lacking = [step.stage for step in pipeline.plan.steps if step.stage in pipeline.not_computed]
    if not lacking:
        return []
    would, texts = "would", []
    if lacking[0].label == "chunks":
        texts = pipeline.components.chunker.embedded(pipeline.frame("docs")["text"].tolist(), [])
    elif lacking[0].name == "index" and "embedder" in lacking[0].uses:
        texts = pipeline.frame("chunks")["text"].tolist()
    if texts and isinstance(pipeline.tools.embedder, CachedEmbedder):
        new = pipeline.tools.embedder.missing(texts)
        tokens = sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in new)
        cost = pipeline.components.embedder.cost(Usage(tokens))
        would = f"would embed {len(new):,} texts, about {tokens:,} tokens{f', {cost:,.2f} USD' if cost else ''}"
    follows = "later stages are not known, and their calls are estimates"
    return [f"no model is run: stage {lacking[0].label} {would}; {follows}"]


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
    found, answers = _before_judging(pipeline)
    found += _of_measures(pipeline, answers, seed)
    if judging and answers is not None and pipeline.components.judge.kind == "chat":
        found.append(_of_judge(pipeline, answers))
    for more in further:
        found += more(answers)
    for (_, repeat), part in list(pipeline.parts.items())[1:]:
        found += _of_part(part, bool(repeat), judging, seed)
    return gathered(found)


def _of_part(part: Pipeline, same_answer: bool, judging: bool, seed: int) -> list[pd.DataFrame]:
    """The needs of another answer to each topic, or of another verdict on the same one (`llm.repeat`)."""
    asked, answers = _before_judging(part)
    found = [] if same_answer else [rows for rows in asked if rows["who"].eq("llm").all()]
    if not same_answer:
        found += _of_measures(part, answers, seed, again=False)
    if judging and answers is not None and part.components.judge.kind == "chat":
        verdicts = _of_judge(part, answers)
        found.append(verdicts[~verdicts["again"].astype(bool)] if "again" in verdicts else verdicts)
    return found


def _before_judging(pipeline: Pipeline) -> tuple[list[pd.DataFrame], pd.DataFrame | None]:
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
    except NotComputed:
        found += _before_contexts(pipeline)
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
        with suppress(NotComputed):
            return found, pipeline.answers if contexts is not None else _unanswered(pipeline)
        return found, _unanswered(pipeline)
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


def _before_contexts(pipeline: Pipeline) -> list[pd.DataFrame]:
    """The needs of rewriter, retriever, reranker and compressor where it is not known what is retrieved."""
    topics, store = pipeline.frame("topics"), pipeline.store
    found = []
    for stage in question_stages(pipeline.stages):
        chat = pipeline.chat_of(stage) if stage.group and "chat" in stage.uses else None
        if chat is None:
            continue
        prompts = stage.component.requests(topics) if isinstance(stage.component, Retriever) else []
        if "queries" in stage.makes:
            try:
                with pipeline.without_calls():
                    pipeline.frame("queries")
                continue
            except NotComputed:
                pass
            except Unasked as unasked:
                prompts = unasked.prompts
        who = str(stage.group)
        told = chat.chat.needs_of(prompts, store) if prompts and isinstance(chat.chat, KeepsReplies) else None
        found.append(untold(who, len(topics)) if told is None else told.assign(who=who))
    return found


def _of_measures(pipeline: Pipeline, answers: pd.DataFrame | None, seed: int, again: bool = True) -> list[pd.DataFrame]:
    """The needs of the answer measures; unknown `answers` are missing."""
    if not any("chat" in measure.uses for measure in pipeline.components.answers.values()):
        return []
    try:
        contexts = pipeline.contexts_from_ledger()
    except _UNKNOWN:
        contexts = None
    kind = pipeline.components.llm.kind
    if answers is None:
        answers = _unanswered(pipeline).assign(status="none")
    asked_for = kind in ASKED or "status" not in answers
    return _of_answer_measures(pipeline, answers, contexts, asked_for, seed, again)


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
    try:
        first = next(batches_of(pipeline.rows("chunks")))["text"].iloc[0]
    except NotComputed:
        return [untold(who, len(pipeline.to_answer(topics)))]
    alone = unknown_contexts(pipeline).assign(text=first)
    told = llm.needs_of(llm.prompts(topics, alone), pipeline.store)
    top_k = retriever.top_k
    return [stand_ins(told).assign(who=who) for _ in range(depth if top_k is None else min(depth, top_k))]


def _of_judge(pipeline: Pipeline, answers: pd.DataFrame) -> pd.DataFrame:
    """The needs of one job's judge; unknown answers are missing."""
    judge = pipeline.components.judge
    topics, evidence = pipeline.frame("topics"), pipeline.frame("evidence")
    candidates = _to_ask(pipeline, answers).assign(candidate=uuid.uuid4().hex)
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


def _to_ask(pipeline: Pipeline, answers: pd.DataFrame) -> pd.DataFrame:
    """The answers to judge [qid, answer], missing where a chat model must be asked."""
    asked = pipeline.to_judge(answers)[["qid", "answer"]]
    # An answer that another part could not give is not asked for again, and not judged; without a status
    # it is not known yet.
    unknown = pipeline.components.llm.kind in ASKED or "status" not in answers
    return asked if unknown else asked.dropna(subset="answer")


def _of_answer_measures(
    pipeline: Pipeline,
    answers: pd.DataFrame,
    contexts: pd.DataFrame | None,
    asked_for: bool,
    seed: int,
    again: bool = True,
) -> list[pd.DataFrame]:
    """The requests of every measure with an LLM, one per row, as in `ChatLLM.needs_of`, with `who`.

    answers: as far as they are known; with `asked_for` those that are missing come from an LLM, and stand-ins
    of their length take their places. contexts: None where they are not known. `seed` draws the topics that
    are measured again; without `again` none are. Tokens and cost are missing for a model that cannot say what it would
    need.
    """
    stages = [s for s in pipeline.stages if isinstance(s, MeasureAnswers) and "chat" in s.uses]
    if not stages:
        return []
    token = uuid.uuid4().hex  # no other job has these stand-ins
    expected = pipeline.components.llm.expected_tokens
    stand_in = f"{token} " + _TOKEN * int(expected * _WORDS_PER_TOKEN)
    unknown = answers["answer"].isna() & asked_for
    whole = answers.assign(
        answer=answers["answer"].astype(object).where(~unknown, answers["qid"] + " " + stand_in).astype("str")
    )
    frames = {"answers": whole.assign(status="ok") if "status" not in whole else whole}
    if contexts is None:
        frames |= _unknown_contexts(pipeline, token)
    guessed = bool(unknown.any()) or contexts is None

    def read(read: Read, qids: Sequence[str] | None = None) -> pd.DataFrame:
        frame = frames[read.name] if read.name in frames else pipeline.frame(read.name)
        return frame if qids is None else frame[frame["qid"].isin(qids)].reset_index(drop=True)

    repeated = repeating(pipeline) if again else []
    return [_of_measure(s, pipeline, read, guessed, frames["answers"], seed, s in repeated) for s in stages]


def _of_measure(
    stage: MeasureAnswers,
    pipeline: Pipeline,
    read: Any,
    guessed: bool,
    answers: pd.DataFrame,
    seed: int,
    repeated: bool,
) -> pd.DataFrame:
    chat = pipeline.chat_of(stage)
    model = None if chat is None else chat.chat
    if not isinstance(model, KeepsReplies):
        return untold(stage.asks_as, len(answers))
    tools = replace(pipeline.tools, embedder=_NoVectors())
    telling = TellingChat(model, guessed)

    def reads_of(qids: Sequence[str] | None = None) -> Reads:
        return Reads(stage.reads, partial(read, qids=qids), lambda folder: pipeline.folder_of(folder.name))

    measured(stage, reads_of(), tools, telling)
    asked = telling.needs
    if not guessed and pipeline.store.find(pipeline.key_of(stage, answers=answers)) is not None:
        asked = asked.assign(known=True)
    if repeated:
        qids = drawn(answers, stage.component, seed)
        again = TellingChat(model, guessed)
        measured(stage, reads_of(qids), tools, RepeatingChat(again, SALT))
        asked = pd.concat([asked, again.needs], ignore_index=True)
    return asked.assign(who=stage.asks_as) if len(asked) else untold(stage.asks_as, 0)


def repeating(pipeline: Pipeline) -> list[MeasureAnswers]:
    """The measures with an LLM that are to be repeated."""
    measures = [stage for stage in pipeline.stages if isinstance(stage, MeasureAnswers)]
    return [s for s in measures if "chat" in s.uses and s.component.repeat]


def drawn(answers: pd.DataFrame, measure: Any, seed: int) -> list[str]:
    """The qids of a repeated measure, drawn by the seed from the answered topics."""
    able = np.sort(answers.loc[answers["answer"].notna(), "qid"].unique().astype(object))
    chosen = np.random.default_rng(seed).choice(able, min(measure.repeat, len(able)), replace=False)
    return sorted(map(str, chosen))


def measured(stage: MeasureAnswers, reads: Reads, tools: Tools, chat: Any) -> pd.DataFrame:
    """Frame `answer_values` of the reads, by the given chat model, not stored."""
    limited = replace(tools, chat=chat).limited_to(stage.uses, type(stage.component).__name__)
    made = stage.make(reads, limited)["answer_values"]
    assert isinstance(made, pd.DataFrame)
    return made


def _unknown_contexts(pipeline: Pipeline, token: str) -> dict[str, pd.DataFrame]:
    """Stand-in contexts as long as the budget, of a single passage."""
    qids, n = pipeline.frame("topics")["qid"], pipeline.n_tokens
    text = (qids + f" {token} " + _TOKEN * n).astype("str")
    passages = pd.DataFrame(
        {
            "qid": qids, "n_tokens": n, "position": 0, "rank": 0, "docno": "?", "text": text,
            "chars": text.str.len() if n else 0,
        }
    )  # fmt: skip
    contexts = pd.DataFrame({"qid": qids, "n_tokens": n, "text": text if n else ""})
    longest = passages.assign(longest=passages["chars"])
    return {"used_passages": passages, "longest_passages": longest, "contexts": contexts}


class _NoVectors(Embedder):
    """An embedder for measurements whose values are ignored."""

    def embed(self, texts: Sequence[str], role: str = "passage", scratch: Any = None) -> np.ndarray:
        return np.zeros((len(texts), 1), dtype=np.float32)


def needs_of_judging(jobs: Sequence[MeasuredJob]) -> list[pd.DataFrame]:
    """The requests of judging jobs together at the end of their sweep."""
    pipelines = {job.folder.number: job.pipeline for job in jobs}
    one, settings = jobs[0].pipeline, jobs[0].settings
    answers = {number: _before_judging(pipeline)[1] for number, pipeline in pipelines.items()}
    known = {number: frame for number, frame in answers.items() if frame is not None}
    if not known or one.components.judge.kind != "chat":
        return []
    sampled = True
    try:
        predictor = fitting_predictor(one, settings) if one.sampled_by_prediction else None
        sample_topics(list(pipelines.values()), predictor)
    except _UNKNOWN:  # which topics depends on what is retrieved: as many others stand for them
        sampled = False
    if one.components.judge.mode == "batch":
        candidates = [_to_ask(pipelines[n], frame).assign(candidate=str(n)) for n, frame in known.items()]
        judge = one.components.judge
        topics, evidence = one.frame("topics"), one.frame("evidence")
        together = pd.concat(candidates, ignore_index=True)
        told = judge.needs(topics, evidence, together, one.tools, repeat=True)
        asked = [untold("judge", len(together)) if told is None else told.assign(who="judge")]
    else:
        asked = [_of_judge(pipelines[n], frame) for n, frame in known.items()]
    return [frame.assign(exact=frame["exact"] & sampled) for frame in asked]
