"""Retrieval measures of ir-measures by topic, over documents and chunks; runs and qrels as TREC files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import RANKINGS_SECTION
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import RANKINGS
from ragauge.contract.measures import AnswerMeasureInfo

OF_CHUNKS = "chunk:"  # before the name of a measure that is taken over chunks and not over documents
_F1 = re.compile(r"F1@([1-9][0-9]*)")
# Measures of ir-measures whose values lie in [0, 1]; others count, or weigh by gains of any size.
_RATIOS = frozenset(
    {
        "P", "RR", "Rprec", "AP", "R", "Bpref", "SetAP", "SetF", "SetP", "SetR", "Success", "IPrec", "infAP",
        "Judged", "Compat", "Accuracy", "RBP", "ERR", "alpha_nDCG", "nERR_IA", "AP_IA", "P_IA", "StRecall",
        "NRBP", "nNRBP", "nDCG",
    }
)  # fmt: skip
# Measures of ndeval: what a document adds to the parts of the evidence that those above it hold.
_OF_PARTS = frozenset({"ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"})
_TAKEN = {"judged": "judged_share"}  # of a metric that would be a column of a job's outcomes: its name
_TRIAL = (  # a run and its truth, small, but of the form of any other
    pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["d", "e"], "relevance": [1, 1], "iteration": ["0", "1"]}),
    pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["e", "d"], "score": [1.0, 0.5]}),
)


def metric_of(name: str) -> str:
    """A measure's MLflow name, without the invalid @: P@5 is p_at_5, chunk:P@5 is chunk_p_at_5."""
    metric = re.sub(r"[^a-z0-9]+", "_", name.replace("@", "_at_").lower()).strip("_")
    return _TAKEN.get(metric, metric)


def full_name(name: str) -> str:
    """A measure's name in ir-measures (RR for MRR); ConfigError for an unknown one."""
    if of_chunks(name):
        return OF_CHUNKS + full_name(name.removeprefix(OF_CHUNKS))
    return name if _F1.fullmatch(name) else str(_parse(name))


def of_chunks(name: str) -> bool:
    """Whether a measure is taken over chunks; others are over documents."""
    return name.startswith(OF_CHUNKS)


CLASSICS = {name: metric_of(name) for name in RANKINGS}
CLASSIC_NAMES = {metric: name for name, metric in CLASSICS.items()}


def ranking_infos(names: Sequence[str]) -> tuple[AnswerMeasureInfo, ...]:
    """The display properties of the measures; `unit` marks those in [0, 1]."""
    found = []
    for name in map(full_name, names):
        label = f"{name.removeprefix(OF_CHUNKS)}, chunks" if of_chunks(name) else name
        unit: Literal["ratio", "score"] = "ratio" if _is_ratio(name) else "score"
        found.append(AnswerMeasureInfo(metric_of(name), label, "higher", unit, RANKINGS_SECTION, "ranking"))
    return tuple(found)


def ranking_values(
    ranked: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[str], subtopics: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The value of each measure for every topic of the qrels: [qid, measure, value], measure by measure.

    ranked: [qid, docno, rank], what is ranked and from which rank on, all of it: a measure cuts it where its
    name says so. qrels: [qid, docno, relevance]; what is not in them counts as not relevant, but where a
    measure says otherwise (Judged, Bpref, judged_only). `measures` are names of ir-measures such as P@1, R@5, nDCG@10,
    RR, AP(rel=2), and F1@k = 2 P@k R@k / (P@k + R@k), 0 where both are 0. subtopics: [qid, docno, part, relevance],
    which ndeval's measures take, such as StRecall@5 and alpha_nDCG@10: every part of the evidence is a subtopic. Each
    comes back as `metric_of` its `full_name`. A topic without hits has what ir-measures gives it, as a rule 0; a value
    that is not defined is missing. Raises ConfigError on a name that is not known or not to be had here, DataError
    where a measure leaves [0, 1] because of negative grades.
    """
    import ir_measures

    asked = {full_name(name): _parts(name) for name in measures}
    columns = ["qid", "measure", "value"]
    if qrels.empty or not asked:
        return pd.DataFrame({"qid": pd.Series(dtype="str"), "measure": pd.Series(dtype="str"),
                             "value": pd.Series(dtype="float64")})  # fmt: skip
    truth = qrels.rename(columns={"qid": "query_id", "docno": "doc_id"})
    scored = ranked.rename(columns={"qid": "query_id", "docno": "doc_id"})
    # Tools that read runs sort by score, and a retriever may have reordered its hits.
    scored = scored.assign(score=1.0 / (1.0 + scored["rank"]))
    parsed = list(dict.fromkeys(part for parts in asked.values() for part in parts))
    by_part = [measure for measure in parsed if measure.NAME in _OF_PARTS]
    others = [measure for measure in parsed if measure not in by_part]
    rows = list(ir_measures.iter_calc(others, _strings(truth), _strings(scored))) if others else []
    if by_part:
        if subtopics is None:
            raise ConfigError(f"measures: {by_part[0]} takes the parts of the evidence, which are not known here")
        of_parts = subtopics.rename(columns={"qid": "query_id", "docno": "doc_id", "part": "iteration"})
        of_parts = of_parts.assign(iteration=of_parts["iteration"].astype(str).astype(object))
        with redirect_stderr(StringIO()):  # it warns where every topic has a single part
            rows += ir_measures.iter_calc(by_part, _strings(of_parts), _strings(scored))
    triples = [(row.query_id, str(row.measure), row.value) for row in rows]
    long = pd.DataFrame(triples, columns=["query_id", "measure", "value"])
    wide = long.pivot(index="query_id", columns="measure", values="value")
    wide = wide.reindex(index=truth["query_id"].unique(), columns=list(map(str, parsed)))
    wide = wide.fillna({str(measure): measure.DEFAULT for measure in parsed})
    found = {name: _of(wide, parts) for name, parts in asked.items()}
    for name, values in found.items():
        _check_ratio(name, values)
    return pd.concat(
        [
            pd.DataFrame({"qid": wide.index, "measure": metric_of(name), "value": values.to_numpy(float)})
            for name, values in found.items()
        ],
        ignore_index=True,
    ).astype({"qid": "str", "measure": "str"})[columns]


def _strings(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that ir-measures reads, with names as Python strings."""
    columns = [c for c in ("query_id", "doc_id", "relevance", "score", "iteration") if c in frame]
    return frame[columns].astype({"query_id": object, "doc_id": object})


def ranking_means(values: pd.DataFrame) -> dict[str, float]:
    """The mean of every measure over topics with a value, from `ranking_values`."""
    means = values.groupby("measure", sort=False)["value"].mean().dropna()
    return {str(metric): float(value) for metric, value in means.items()}


def cut_short(names: Iterable[str], run: pd.DataFrame, limits: Iterable[int | None]) -> str | None:
    """A sentence if measures look below the end of a truncated run; else None.

    limits: the numbers of hits of a topic that the retriever and what follows it keep. The default measures of every
        job are passed over.
    """
    limit = min((limit for limit in limits if limit), default=0)
    asked = [name for name in names if name not in RANKINGS]
    if not asked or not limit or run.empty or run["rank"].max() + 1 < limit:
        return None
    reach = {True: int(run["rank"].max()) + 1, False: int(document_run(run)["rank"].max()) + 1}
    deep = [name for name in asked if _cutoff(name) > reach[of_chunks(name)]]
    if not deep:
        return None
    return (
        f"measures: {', '.join(deep)} look further down than the run reaches, {reach[False]} documents in "
        f"{limit} chunks: what lies below counts as not found (retriever.top_k, reranker.depth and top_k)"
    )


def unjudged(names: Iterable[str], qrels: pd.DataFrame) -> str | None:
    """A sentence if measures distinguish judged documents, and none was judged not relevant; else None."""
    told = [
        name
        for name in names
        if any(part.NAME in ("Judged", "Bpref", "infAP") or part.params.get("judged_only") for part in _parts(name))
    ]
    if not told or qrels.empty or (qrels["relevance"] < 1).any():
        return None
    return (
        f"measures: {', '.join(told)} tell documents that were judged from others, and this dataset holds "
        "the relevant ones alone: what is judged is what is relevant"
    )


def check_rankings(names: Sequence[str]) -> None:
    """ConfigError for an unknown name in the config's `measures`, or two names of one metric."""
    for name in names:
        if of_chunks(name) and any(part.NAME in _OF_PARTS for part in _parts(name)):
            raise ConfigError(f"measures: {name} is of documents alone: which parts a chunk holds is not known")
    metrics = [metric_of(full_name(name)) for name in names]
    twice = [name for name, metric in zip(names, metrics, strict=True) if metrics.count(metric) > 1]
    if twice:
        raise ConfigError(f"measures: {' and '.join(twice)} are one metric")


def _parts(name: str) -> list[Any]:
    """The measures of ir-measures from which a measure is computed."""
    name = name.removeprefix(OF_CHUNKS)
    f1 = _F1.fullmatch(name)
    return [_parse(f"{letter}@{f1[1]}") for letter in "PR"] if f1 else [_parse(name)]


def _of(wide: pd.DataFrame, parts: Sequence[Any]) -> pd.Series:
    """The values by topic of one measure, or the harmonic mean of two."""
    if len(parts) == 1:
        return wide[str(parts[0])]
    first, second = (wide[str(part)] for part in parts)
    both = first + second
    return (2 * first * second / both.where(both > 0, 1.0)).where(both > 0, 0.0)


def _is_ratio(name: str) -> bool:
    return all(part.NAME in _RATIOS and "gains" not in part.params for part in _parts(name))


def _check_ratio(name: str, values: pd.Series) -> None:
    outside = values.notna() & ~values.between(-1e-9, 1 + 1e-9)
    if _is_ratio(name) and outside.any():
        raise DataError(
            f"measures: {name} of qid={values.index[outside][0]!r} is {values[outside].iloc[0]:g}; allowed "
            "are qrels by which it lies between 0 and 1, without negative grades"
        )


def _cutoff(name: str) -> int:
    """The rank cutoff of a measure; 0 for none."""
    cutoffs = [part.params.get("cutoff") for part in _parts(name)]
    return max((int(cutoff) for cutoff in cutoffs if isinstance(cutoff, (int, np.integer))), default=0)


@lru_cache(maxsize=256)
def _parse(name: str) -> Any:
    """The measure of ir-measures, tried once; ConfigError if unknown or unavailable."""
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name)
        measure.validate_params()
    except (NameError, ValueError, SyntaxError, AssertionError, TypeError) as error:
        raise ConfigError(
            f"measures: {name!r} is no measure that ir-measures knows; names are written like P@1, R@5, "
            "F1@5, nDCG@10, AP(rel=2), chunk:R@5"
        ) from error
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and cutoff < 1:  # trec_eval ends the process
        raise ConfigError(f"measures: {name!r} has the cutoff {cutoff}; allowed are whole numbers from 1")
    _check_provider(name, measure)
    try:
        list(ir_measures.iter_calc([measure], *_TRIAL))
    except Exception as error:  # of any of a dozen foreign packages
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"measures: {name!r} cannot be computed: {why}") from error
    return measure


def _check_provider(name: str, measure: Any) -> None:
    """ConfigError if no installed package computes the measure."""
    import ir_measures

    known = [provider for provider in ir_measures.DefaultPipeline.providers if provider.supports(measure)]
    there = next((provider for provider in known if provider.is_available()), None)
    if there is None:
        told = " or ".join(filter(None, (provider.install_instructions() for provider in known)))
        raise ConfigError(
            f"measures: {name!r} takes a package that is not installed: {told}"
            if told
            else f"measures: {name!r}: no package computes it with these parameters"
        )
    if there.NAME == "gdeval":  # its script takes numbers for topics and documents
        raise ConfigError(f"measures: {name!r}: gdeval, which computes it, takes topics and documents by number")


def document_run(run: pd.DataFrame) -> pd.DataFrame:
    """The document ranking of a run of chunks: qid, docno, rank (from 0), score.

    A document is as good as its first chunk (a chunk's docno is `<parent>%p<i>`; one without `%p` is a
    document). `score` is 1 / (1 + rank), since tools that read runs sort by score and a retriever may have
    reordered its hits.
    """
    documents = run.sort_values(["qid", "rank"], kind="stable")[["qid", "docno"]]
    documents = documents.assign(docno=documents["docno"].str.replace(r"%p[^%]*$", "", regex=True))
    documents = documents.drop_duplicates(ignore_index=True)
    rank = documents.groupby("qid").cumcount()
    return documents.assign(rank=rank, score=1.0 / (1.0 + rank))


def qrels_of(evidence: pd.DataFrame) -> pd.DataFrame:
    """The distinct documents with the evidence of each topic: qid, docno, relevance.

    relevance is the highest of the document's parts; 1 where the evidence has no such column. Parts that name
    no document are not in it.
    """
    named = evidence[evidence["docno"].notna()]
    if "relevance" not in named:
        qrels = named[["qid", "docno"]].drop_duplicates(ignore_index=True)
        return qrels.assign(relevance=1)
    grades = named.groupby(["qid", "docno"], sort=False)["relevance"].max()
    return grades.reset_index()


def part_qrels(evidence: pd.DataFrame) -> pd.DataFrame:
    """The documents of every part of the evidence: qid, docno, part, relevance (1 without such a column)."""
    named = evidence[evidence["docno"].notna()]
    return named[["qid", "docno", "part"]].assign(relevance=named.get("relevance", 1))


def write_trec_run(run: pd.DataFrame, path: Path, tag: str) -> None:
    """Writes the document-level run as `qid Q0 docno rank score tag` lines, best first (see `document_run`).

    Documents, not chunks, so that the file fits the qrels. White space inside a qid, docno or tag, which the
    format cannot hold, is percent-encoded, here as in the qrels.
    """
    documents = document_run(run)
    fields = {name: _field(name) for name in {*documents["qid"], *documents["docno"]}}
    named = _field(tag)
    lines = [
        f"{fields[qid]} Q0 {fields[docno]} {rank} {score:.10f} {named}\n"
        for qid, docno, rank, score in zip(*(documents[name].tolist() for name in documents), strict=True)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def write_qrels(evidence: pd.DataFrame, path: Path) -> None:
    """Writes the evidence's documents as `qid 0 docno relevance` lines (see `qrels_of`)."""
    lines = [
        f"{_field(qid)} 0 {_field(docno)} {relevance}\n"
        for qid, docno, relevance in qrels_of(evidence).itertuples(index=False)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def _field(value: str) -> str:
    return re.sub(r"\s", lambda match: quote(match.group()), value)
