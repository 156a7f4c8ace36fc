"""Real PyTerrier pipelines and LangChain retrievers; the targets that the tests name are in this file."""

import sys

import pandas as pd
import pyterrier as pt
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import code_of, identity
from ragauge.contract.option import values_of
from ragauge.plugins.adapters.retrievers import LangChainRetriever, PyTerrierPipeline

CHUNKS = pd.DataFrame(
    {
        "docno": ["paris%p0", "rome%p0", "oslo%p0"],
        "text": ["Paris is in France.", "Rome is in Italy, not in France.", "Oslo is in Norway."],
    }
)
TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["France", "Norway", "?!"]})


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """This file as the module `team`, as a team's package would be."""
    monkeypatch.setitem(sys.modules, "team", sys.modules[__name__])


def write_words(chunks, folder):
    """An index: the words of every chunk, in a file."""
    words = chunks.assign(word=chunks["text"].str.findall(r"\w+")).explode("word")
    words[["docno", "word"]].to_csv(folder / "words.csv", index=False)


class Indexer:
    """An indexer as PyTerrier's are."""

    given = None

    def index(self, records):
        Indexer.given = records


def words_and_more(folder, boost=1.0):
    """Chunks by how often they hold the query, their scores shifted by an apply: a pipeline of two stages."""
    words = pd.read_csv(folder / "words.csv")
    counts = words.groupby(["word", "docno"]).size().rename("score").reset_index().rename(columns={"word": "query"})
    found = pt.apply.generic(lambda topics: topics.merge(counts, on="query").assign(rank=0))
    return found >> pt.apply.doc_score(lambda row: row["score"] + boost)


def needs_more(chunks):
    raise ImportError("Could not import rank_bm25, please install it")


def in_memory(chunks):
    """A transformer that finds every chunk for every topic, all with the same score."""
    found = chunks[["docno"]].assign(score=1.0, rank=range(len(chunks)))

    def transform(topics):
        assert list(topics.columns) == ["qid", "query"]
        return topics.merge(found, how="cross")

    return pt.apply.generic(transform)


def doubled():
    """A stage that changes the texts."""
    return pt.apply.generic(lambda run: run.assign(text=run["text"] * 2))


def faulty(what):
    def transform(topics):
        run = topics[["qid"]].assign(docno="paris%p0", score=1.0)
        if what == "qid":
            return run.assign(qid="q9")
        if what == "docno":
            return run.assign(docno="atlantis%p0")
        if what == "score":
            return run.assign(score=float("nan"))
        if what == "twice":
            return pd.concat([run, run])
        if what == "no frame":
            return run.to_dict("records")
        return run.drop(columns=what.removeprefix("no "))

    return pt.apply.generic(transform)


class ReadsText(pt.Transformer):
    """A re-ranker as most are: it needs the chunks' text in the run."""

    def transform(self, inp):
        pt.validate.result_frame(inp, extra_columns=["text"])
        return inp


def longest():
    """A re-ranker by the length of a row's text."""
    return pt.apply.doc_score(lambda row: len(row["text"]))


def to_paris():
    """A stage that puts another document, once a topic, in the place of those that were found."""
    return pt.apply.generic(lambda run: run.drop_duplicates("qid").assign(docno="paris%p0"))


def reads_title():
    return pt.apply.generic(lambda run: run.assign(n=run["title"].str.len()))


def search(retriever, folder):
    retriever.build_index(CHUNKS, folder, None)
    return retriever.transformer(CHUNKS, folder, None)(TOPICS)


class TestPyTerrierPipeline:
    def test_the_code_behind_its_target_counts(self):
        assert code_of(PyTerrierPipeline({"_target_": "builtins.dict"})) == {}
        assert set(code_of(PyTerrierPipeline({"_target_": "bm25s.x"}))["code"]) == {"bm25s"}

    def test_a_function_that_makes_a_pipeline(self, tmp_path):
        retriever = PyTerrierPipeline(
            pipeline={"_target_": "team.words_and_more", "boost": 2.0}, index={"_target_": "team.write_words"}
        )
        run = search(retriever, tmp_path)
        frames.check("run", run)
        assert run["qid"].tolist() == ["q1", "q1", "q2"]
        assert run["docno"].tolist() == ["paris%p0", "rome%p0", "oslo%p0"]
        assert run["score"].tolist() == [3.0, 3.0, 3.0]

    def test_a_pipeline_composed_in_the_configuration(self, tmp_path):
        pipeline = {
            "_target_": "pyterrier.Compose",
            "_args_": [{"_target_": "team.in_memory"}, {"_target_": "pyterrier.RankCutoff", "k": 2}],
        }
        run = search(PyTerrierPipeline(pipeline), tmp_path)
        assert run.groupby("qid").size().to_dict() == {"q1": 2, "q2": 2}

    def test_ties_by_docno_and_the_cut(self, tmp_path):
        run = search(PyTerrierPipeline({"_target_": "team.in_memory"}, top_k=2), tmp_path)
        assert run["docno"].tolist() == ["oslo%p0", "paris%p0"] * 2
        assert run["rank"].tolist() == [0, 1, 0, 1]

    @pytest.mark.parametrize(
        ("what", "message"),
        [
            ("no score", r"team\.faulty: column score is missing from its run; it has qid, docno"),
            ("no docno", "column docno is missing"),
            ("no qid", "column qid is missing"),
            ("qid", "qid unknown here: 'q9'"),
            ("docno", "docno of no chunk: 'atlantis%p0'"),
            ("score", "qid='q1', docno='paris%p0' has no finite score"),
            ("twice", "qid='q1', docno='paris%p0' is returned twice"),
            ("no frame", r"team\.faulty: returned a list, not a frame"),
        ],
    )
    def test_runs_that_are_wrong(self, tmp_path, what, message):
        with pytest.raises(DataError, match=message):
            search(PyTerrierPipeline({"_target_": "team.faulty", "what": what}), tmp_path)

    def test_a_stage_that_needs_the_text_gets_it(self, tmp_path):
        stages = [{"_target_": "team.in_memory"}, {"_target_": "team.ReadsText"}]
        pipeline = {"_target_": "pyterrier.Compose", "_args_": stages}
        run = search(PyTerrierPipeline(pipeline), tmp_path)
        assert run.groupby("qid").size().to_dict() == {"q1": 3, "q2": 3}

    def test_a_reranker_that_reads_the_text_of_a_row_gets_that_of_the_row_s_docno(self, tmp_path):
        stages = [{"_target_": f"team.{name}"} for name in ("in_memory", "longest", "to_paris", "longest")]
        pipeline = PyTerrierPipeline({"_target_": "pyterrier.Compose", "_args_": stages})
        ranker = pipeline.transformer(CHUNKS, tmp_path, None)
        run = ranker(TOPICS)
        lengths = dict(zip(CHUNKS["docno"], CHUNKS["text"].str.len(), strict=True))
        assert dict(zip(run["docno"], run["score"], strict=True)) == {"paris%p0": lengths["paris%p0"]}
        assert ranker(TOPICS)["score"].tolist() == run["score"].tolist()

    def test_a_text_that_a_stage_changed_stays_changed(self, tmp_path):
        stages = [{"_target_": f"team.{name}"} for name in ("in_memory", "longest", "doubled", "longest")]
        run = search(PyTerrierPipeline({"_target_": "pyterrier.Compose", "_args_": stages}), tmp_path)
        lengths = dict(zip(CHUNKS["docno"], CHUNKS["text"].str.len(), strict=True))
        assert run["score"].tolist() == [2 * lengths[docno] for docno in run["docno"]]

    def test_a_stage_that_misses_another_column_is_one_line(self, tmp_path):
        stages = [{"_target_": "team.in_memory"}, {"_target_": "team.reads_title"}]
        pipeline = {"_target_": "pyterrier.Compose", "_args_": stages}
        with pytest.raises(DataError, match=r"Compose: column title is missing for a stage of it$"):
            search(PyTerrierPipeline(pipeline), tmp_path)

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({}, r"retriever\.pipeline\._target_=None: must be the dotted path"),
            ({"_target_": "nowhere.at.all"}, "there is no such class or function"),
            ({"_target_": "team.nothing"}, "there is no such class or function"),
            ({"_target_": "team.in_memory", "depth": 3}, "called with depth, chunks: .*'depth'"),
            ({"_target_": "team.needs_more"}, r"team\.needs_more called with chunks: .* install it"),
            ({"_target_": "team_half.search"}, r"team_half cannot be imported: cannot import name 'gone'"),
            ({"_target_": "builtins.dict"}, "made a dict, which is no PyTerrier transformer"),
        ],
    )
    def test_targets_that_are_wrong(self, tmp_path, monkeypatch, spec, message):
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "team_half.py").write_text("from json import gone\n")
        with pytest.raises(ConfigError, match=message):
            search(PyTerrierPipeline(spec), tmp_path)

    def test_identity(self):
        one = PyTerrierPipeline({"_target_": "team.in_memory"})
        other = PyTerrierPipeline({"_target_": "team.in_memory"}, revision=2)
        assert identity(one)["pipeline"] == {"_target_": "team.in_memory"}
        assert identity(one) != identity(other)
        assert one.index_identity() == other.index_identity() == {"index": "pyterrier", "version": 1, "made": None}
        index = {"_target_": "team.write_words"}
        made = [PyTerrierPipeline(one.pipeline, index, revision=n).index_identity()["made"] for n in (1, 2)]
        assert made == [{"index": index, "revision": 1}, {"index": index, "revision": 2}]

    def test_an_indexer_is_given_the_chunks(self, tmp_path):
        PyTerrierPipeline({"_target_": "team.in_memory"}, {"_target_": "team.Indexer"}).build_index(
            CHUNKS.assign(parent="d"), tmp_path, None
        )
        assert Indexer.given == CHUNKS.to_dict("records")

    def test_top_k_and_what_its_key_holds(self):
        spec = {"_target_": "builtins.dict"}
        for made in (PyTerrierPipeline, LangChainRetriever):
            with pytest.raises(ConfigError, match=r"retriever\.top_k=0"):
                made(spec, top_k=0)
            assert made(spec, top_k=1).top_k == 1
        cut = {"version": 1, "top_k": values_of("hydra/shared/hits")["top_k"], "revision": 1}
        assert identity(PyTerrierPipeline(spec)) == {"component": "pyterrier", "pipeline": spec, "index": None, **cut}
        assert identity(LangChainRetriever(spec)) == {"component": "langchain", "retriever": spec, **cut}


class Words(BaseRetriever):
    """Documents that hold a word of the query, in the order given; `lose` takes their docno away."""

    documents: list[Document]
    lose: bool = False
    repeat: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        found = [d for d in self.documents if query.lower() in d.page_content.lower()] * self.repeat
        return [Document(page_content=d.page_content, metadata={"source": "x"}) for d in found] if self.lose else found


class Elsewhere(BaseRetriever):
    """A service that knows documents of its own."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="", metadata={"docno": "atlantis%p0"})]


class TestLangChainRetriever:
    def test_a_retriever_with_documents(self, tmp_path):
        run = search(LangChainRetriever({"_target_": "team.Words"}), tmp_path)
        frames.check("run", run)
        assert run["qid"].tolist() == ["q1", "q1", "q2"]
        assert run["docno"].tolist() == ["paris%p0", "rome%p0", "oslo%p0"]
        assert run["score"].tolist() == [1, 1 / 2, 1]

    def test_a_retriever_of_the_community(self, tmp_path):
        retriever = LangChainRetriever({"_target_": "langchain_community.retrievers.TFIDFRetriever", "k": 2}, top_k=1)
        run = search(retriever, tmp_path)
        assert run["docno"].tolist() == ["paris%p0", "oslo%p0"]

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            (
                {"_target_": "team.Words", "lose": True},
                r"no metadata\['docno'\]; its metadata has source",
            ),
            ({"_target_": "team.Elsewhere"}, "docno of no chunk: 'atlantis%p0'"),
            ({"_target_": "team.Words", "repeat": 2}, "qid='q1', docno='paris%p0' is returned twice"),
        ],
    )
    def test_hits_that_are_wrong(self, tmp_path, spec, message):
        with pytest.raises(DataError, match=message):
            search(LangChainRetriever(spec), tmp_path)

    def test_what_is_no_retriever(self, tmp_path):
        with pytest.raises(ConfigError, match=r"retriever\.retriever: builtins\.dict made a dict"):
            search(LangChainRetriever({"_target_": "builtins.dict"}), tmp_path)

    def test_identity(self):
        spec = {"_target_": "team.Words"}
        assert identity(LangChainRetriever(spec)) != identity(LangChainRetriever({**spec, "lose": True}))
        assert LangChainRetriever(spec, 3).index_identity() == LangChainRetriever(spec).index_identity()
