"""The measures ares_*: probabilities by topic, of the passages that the LLM was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.contract.identity import identity
from ragauge.contract.topics import QUESTIONS
from ragauge.contract.workplace import FreshWorkplace
from ragauge.plugins.training.ares import ares
from ragauge.plugins.training.ares.ares import Ares
from ragauge.plugins.training.ares.interactions import Triple
from ragauge.plugins.training.ares.network import TEXTS, JudgeNetwork, load_encoder, load_judge, n_features
from tiny_cross_encoder import write_cross_encoder


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    """A judge of random weights for all three questions."""
    encoder, tokenizer = load_encoder(write_cross_encoder(tmp_path / "base", positions=128), "cpu", "key")
    rng = np.random.default_rng(0)
    weight = 0.3 * rng.standard_normal((3, n_features(TEXTS, encoder.config.hidden_size)))
    network = JudgeNetwork(encoder, tokenizer, TEXTS, 64, QUESTIONS, weight, np.zeros(3), np.full(3, 2.0))
    network.save(tmp_path / "judge")
    return tmp_path / "judge"


def tools(root: Path) -> Tools:
    none: Any = None
    return Tools(FreshWorkplace(root, root, ""), none, none)


TOPICS = pd.DataFrame({"qid": ["a", "b", "c"], "query": ["Where?", "Who?", "When?"]})
PASSAGES = pd.DataFrame(
    {
        "qid": ["a", "a", "b"],
        "n_tokens": 100,
        "position": [0, 1, 0],
        "text": ["in Bar", "in Foo, far away", "Ann"],
        "chars": [6, 6, 3],  # the second is cut
    }
)
ANSWERS = pd.DataFrame({"qid": ["a", "b", "c"], "n_tokens": 100, "answer": ["Bar", None, "now"]})


def values(measure: Ares, root: Path) -> pd.DataFrame:
    found = measure.measure_passages(TOPICS, pd.DataFrame(), PASSAGES, ANSWERS, tools(root))
    check("answer_values", found)
    return found.set_index(["measure", "qid"])


def test_a_context_is_as_relevant_as_its_best_passage_and_what_was_cut_off_is_not_read(
    judge: Path, tmp_path: Path
) -> None:
    network = load_judge(judge, "cpu", "key")
    each = network.probabilities("context_relevance", [Triple("Where?", "in Bar"), Triple("Where?", "in Foo")])
    found = values(Ares(str(judge)), tmp_path / "s")["value"]
    assert found["ares_context_relevance", "a"] == pytest.approx(each.max(), abs=1e-6)
    mean = values(Ares(str(judge), passages="mean"), tmp_path / "s")["value"]
    assert mean["ares_context_relevance", "a"] == pytest.approx(each.mean(), abs=1e-6)
    faithful = network.probabilities("answer_faithfulness", [Triple("Where?", t, "Bar") for t in ("in Bar", "in Foo")])
    assert found["ares_answer_faithfulness", "a"] == pytest.approx(faithful.max(), abs=1e-6)
    (relevant,) = network.probabilities("answer_relevance", [Triple("When?", "", "now")])
    assert found["ares_answer_relevance", "c"] == pytest.approx(relevant, abs=1e-6)
    assert found.dropna().between(0, 1).all()


def test_what_cannot_be_judged_is_missing_and_says_why(judge: Path, tmp_path: Path) -> None:
    found = values(Ares(str(judge)), tmp_path / "s")
    assert found.loc[("ares_answer_faithfulness", "b"), "status"] == "no answer"
    assert found.loc[("ares_context_relevance", "b"), "status"] == "ok"
    assert found.loc[("ares_context_relevance", "c"), "status"] == "no context"
    assert found["value"].isna().equals(found["status"].ne("ok"))


def test_where_nothing_can_be_judged_no_value_is_made_up(judge: Path, tmp_path: Path) -> None:
    unanswered = ANSWERS.assign(answer=None)
    measure = Ares(str(judge))
    found = measure.measure_passages(TOPICS, pd.DataFrame(), PASSAGES.iloc[:0], unanswered, tools(tmp_path / "s"))
    assert len(found) == 9
    assert found["value"].isna().all()
    assert set(found["status"]) == {"no context", "no answer"}


def test_answers_in_another_order_have_the_same_values_and_statuses(judge: Path, tmp_path: Path) -> None:
    turned = ANSWERS.iloc[[2, 0, 1]]
    found = Ares(str(judge)).measure_passages(TOPICS, pd.DataFrame(), PASSAGES, turned, tools(tmp_path / "s"))
    assert found["qid"].tolist() == ["c", "a", "b"] * 3
    assert found["status"].tolist() == [
        "no context", "ok", "ok", "no context", "ok", "no answer", "ok", "ok", "no answer"
    ]  # fmt: skip
    usual = values(Ares(str(judge)), tmp_path / "s")
    pd.testing.assert_frame_equal(found.set_index(["measure", "qid"]).loc[usual.index], usual)


def test_a_triple_is_read_once_in_the_life_of_a_store(
    judge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = values(Ares(str(judge)), tmp_path / "s")

    def nobody(*_: Any) -> None:
        raise AssertionError("loaded again")

    monkeypatch.setattr(ares, "load_judge", nobody)
    assert values(Ares(str(judge)), tmp_path / "s").equals(first)


def test_needs_and_infos_are_those_of_its_questions(judge: Path) -> None:
    assert Ares(str(judge)).needs == {"contexts", "answers"}
    context = Ares(str(judge), questions=["context_relevance"])
    assert context.needs == {"contexts"}
    assert [info.name for info in context.infos] == ["ares_context_relevance"]
    assert context.info.of == "context"


def test_a_judge_is_known_by_its_weights(judge: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(judge, tmp_path / "elsewhere")
    assert identity(Ares(str(copy))) == identity(Ares(str(judge)))
    heads = copy / "heads.safetensors"
    moved = shutil.copytree(copy, tmp_path / "other")
    (moved / "heads.safetensors").write_bytes(heads.read_bytes()[:-1] + b"\x01")
    assert identity(Ares(str(moved))) != identity(Ares(str(judge)))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"model": "nowhere"}, r"answers\.ares\.model=nowhere: no such folder"),
        ({"model": ""}, r"answers\.ares\.model=''"),
        ({"passages": "median"}, r"answers\.ares\.passages='median': allowed are max, mean"),
        (
            {"questions": ["truth"]},
            r"answers\.ares\.questions=\['truth'\]: allowed are lists of context_relevance",
        ),
    ],
)
def test_a_bad_key_is_one_line(judge: Path, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Ares(**{"model": str(judge), **keys})


def test_a_folder_that_is_no_judge_and_one_that_was_not_trained_for_a_question(tmp_path: Path, judge: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no judge\.json: it is no judge that trainer=judge made"):
        Ares(str(tmp_path / "base"))
    file = judge / "judge.json"
    file.write_text(file.read_text().replace('"context_relevance",', ""), encoding="utf-8")
    with pytest.raises(ConfigError, match="was not trained for context_relevance"):
        Ares(str(judge), questions=["context_relevance"])


def test_damaged_heads_are_one_line(judge: Path) -> None:
    (judge / "heads.safetensors").write_bytes(b"pickle")
    with pytest.raises(ConfigError, match=r"heads\.safetensors cannot be read"):
        load_judge(judge, "cpu", "key")
