"""The stages behind a run: passages expanded, compressed, put in order, and what of it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from keeping import Keeping
from ragauge.answering import Extractive
from ragauge.contract.errors import ConfigError
from ragauge.contract.retrieval import ContextOrder
from ragauge.experiment.setup import config
from ragauge.experiment.stages.checks import check_together
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.rankings import compression
from ragauge.retrieval.chunkers import TokenChunker
from ragauge.retrieval.order import LongContextOrder, RankOrder, ReverseOrder
from ragauge.retrieval.retrievers import Reo, Sim
from small_pipeline import DOCS, SmallPipelines, replaced
from whole import Whole

CONF = Path(__file__).resolve().parents[2] / "conf"


def texts_of(pipeline: Pipeline, qid: str = "q1") -> list[str]:
    passages = pipeline.frame("passages")
    found: list[str] = passages.loc[passages["qid"] == qid, "text"].tolist()
    return found


def contexts_of(pipeline: Pipeline) -> list[str]:
    found: list[str] = pipeline.contexts["text"].tolist()
    return found


def test_a_context_is_made_of_the_passages(small: SmallPipelines) -> None:
    plain = small(retriever=Sim(top_k=2))
    assert [stage.name for stage in plain.stages][4:6] == ["run", "context"]
    # The chunk of six words alone lacks the second sentence.
    assert not contexts_of(plain)[0].startswith(DOCS[0]["text"])
    whole = small(retriever=Sim(top_k=2), expander=Whole(), n_tokens=12)
    assert [stage.name for stage in whole.stages][4:7] == ["run", "expanded", "context"]
    first = whole.frame("run").iloc[0]
    assert first["docno"] == "d1%p0"
    assert texts_of(whole)[0] == DOCS[0]["text"]
    assert contexts_of(whole)[0].startswith(DOCS[0]["text"])
    assert whole.contexts["docnos"].iloc[0][0] == "d1%p0"
    assert set(whole.made) & {"chunks", "index", "run"} == set()


def test_the_compressor_works_on_the_expanded_passages(small: SmallPipelines) -> None:
    both = small(expander=Whole(), compressor=Keeping(), retriever=Sim(top_k=1))
    assert [stage.name for stage in both.stages][4:8] == ["run", "expanded", "compressed", "context"]
    assert texts_of(both) == ["Anna built the tower."]
    sizes = both.frame("compression").iloc[0]
    assert sizes["characters_out"] == sum(map(len, (texts_of(both, qid)[0] for qid in ("q1", "q2", "q3"))))
    assert sizes["characters_in"] == sum(len(str(doc["text"])) for doc in DOCS[:3])
    expected = sizes["characters_out"] / sizes["characters_in"]
    assert compression(both.frame("compression")) == {"compressor_ratio": expected}


def test_nothing_to_compress_has_the_ratio_one() -> None:
    sizes = pd.DataFrame({"characters_in": [0], "characters_out": [0]})
    assert compression(sizes) == {"compressor_ratio": 1.0}


def test_depth_is_how_many_passages_are_given_and_left(small: SmallPipelines) -> None:
    cut = small(compressor=Keeping(9, depth=2), retriever=Sim(top_k=4))
    assert len(texts_of(cut)) == 2
    sizes = cut.frame("compression").iloc[0]
    assert sizes["characters_in"] == sizes["characters_out"]


def test_a_stage_is_made_again_for_its_own_parameters_and_those_before_it(small: SmallPipelines) -> None:
    parts: dict[str, Any] = {
        "chunker": TokenChunker(size=3, overlap=0),
        "expander": Whole(),
        "compressor": Keeping(),
    }
    made_of(small(**parts))
    behind = {"context", "scores"}
    shorter = made_of(small(**{**parts, "compressor": Keeping(2)}))
    assert "expanded" not in shorter
    assert {"compressed", *behind} <= {*shorter}
    wider = made_of(small(**{**parts, "expander": Whole(1)}))
    assert {"expanded", "compressed"} <= {*wider}
    assert not {"chunks", "index", "run"} & {*wider}
    turned = made_of(small(**parts, order=ReverseOrder()))
    assert not {"expanded", "compressed"} & {*turned}
    assert behind <= {*turned}


def test_a_changed_document_reaches_the_passages(small: SmallPipelines) -> None:
    before = small(expander=Whole(), retriever=Sim(top_k=1))
    assert texts_of(before) == [DOCS[0]["text"]]
    docs = replaced(DOCS, 0, text="Anna built the tower. It fell.")
    assert texts_of(small(expander=Whole(), retriever=Sim(top_k=1), docs=docs)) == [docs[0]["text"]]


def made_of(pipeline: Pipeline) -> list[str]:
    pipeline.frame("scores")
    return pipeline.made


# --- order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("welded", "order"),
    [
        (Reo(top_k=4), LongContextOrder("first")),
        (Reo(top_k=4, reorder="before_cut"), LongContextOrder("last")),
        (Reo(top_k=3), LongContextOrder("first")),
        (Reo(top_k=3, reorder="before_cut"), LongContextOrder("last")),
    ],
    ids=repr,
)
def test_reo_is_sim_in_long_context_order(small: SmallPipelines, welded: Reo, order: ContextOrder) -> None:
    for n_tokens in (4, 8, 16):
        one = small(retriever=welded, n_tokens=n_tokens)
        two = small(retriever=Sim(top_k=welded.top_k), order=order, n_tokens=n_tokens)
        for frame in ("layouts", "prefixes", "contexts", "scores", "part_scores"):
            pd.testing.assert_frame_equal(one.frame(frame), two.frame(frame))
    assert contexts_of(one) != contexts_of(small(retriever=Sim(top_k=welded.top_k), n_tokens=16))


def test_an_order_by_rank_is_the_same_however_it_is_cut(small: SmallPipelines) -> None:
    plain = small()
    plain.frame("scores")
    cut = small(order=RankOrder("first"))
    cut.frame("scores")
    assert cut.made == []


def test_passages_are_put_in_order_as_chunks_are(small: SmallPipelines) -> None:
    parts: dict[str, Any] = {"expander": Whole(), "retriever": Sim(top_k=9), "n_tokens": 100}
    by_rank = texts_of(small(**parts))
    assert len(by_rank) == len(DOCS)
    assert contexts_of(small(**parts))[0] == " ".join(by_rank)
    assert contexts_of(small(**parts, order=ReverseOrder()))[0] == " ".join(by_rank[::-1])
    assert contexts_of(small(**parts, order=LongContextOrder()))[0] == " ".join(by_rank[i] for i in (1, 3, 2, 0))


# --- config -------------------------------------------------------------------------------------------------


@pytest.fixture
def configured() -> Any:
    """Checks the components of a config as a job does."""
    config.register()

    def check(*overrides: str) -> None:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("config", overrides=list(overrides))
        choices = dict(override.split("=", 1) for override in overrides if "." not in override)
        check_together(instantiate_components(cfg), {"llm": "extractive", **choices})

    return check


def test_reo_brings_its_own_order(configured: Any) -> None:
    with pytest.raises(ConfigError) as error:
        configured("retriever=reo", "order=reverse")
    told = "retriever=reo brings its own order: with order=reverse choose retriever=sim"
    assert str(error.value) == told
    configured("retriever=reo", "order=rank")
    configured("retriever=reo", "retriever.reorder=before_cut", "order=reverse")


@pytest.mark.parametrize("order", ["rank", "long_context", "reverse"])
def test_a_cut_that_there_is_not(configured: Any, order: str) -> None:
    with pytest.raises(ConfigError, match=r"order\.cut='middle': allowed are last, first"):
        configured(f"order={order}", "order.cut=middle")


def test_extractive_answers_come_from_the_passages(small: SmallPipelines) -> None:
    parts: dict[str, Any] = {"llm": Extractive(threshold=-1.0), "retriever": Sim(top_k=1), "n_tokens": 100}
    assert "Graz" not in small(**parts).answers["answer"].iloc[0]
    job = small(**parts, expander=Whole())
    assert "Graz" in job.answers["answer"].iloc[0]
