import pandas as pd
import pytest

from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.answering.judges import LexicalJudge
from ragauge.answering.judges._lexical import words_of
from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.protocols import Tools

EVIDENCE = ["The Red Tower was designed by Anna Brandt in 1890.", "Anna Brandt was born in Graz."]


def judge(
    answer: str | None, tools: Tools, reference: str = "Graz", query: str = "Where was its designer born?"
) -> pd.Series:
    topics = pd.DataFrame({"qid": ["q"], "query": [query], "answer": [reference]})
    evidence = pd.DataFrame({"qid": "q", "part": [1, 0], "docno": None, "text": EVIDENCE[::-1]})
    answers = pd.DataFrame({"qid": ["q"], "n_tokens": [100], "answer": [answer]})
    verdicts = LexicalJudge().judge(topics, evidence, answers, tools)
    frames.check("verdicts", verdicts)
    return verdicts.iloc[0]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        # 1: it says that information is lacking, or nothing
        (LACK_OF_INFORMATION, 1),
        ("The documents do not mention where she was born.", 1),
        ("There is insufficient information.", 1),
        ("The question cannot be answered.", 1),
        ("I don't know.", 1),
        ("...", 1),
        # 5: it holds the reference and is supported
        ("Graz", 5),
        ("She was born in GRAZ!", 5),
        ("Anna Brandt, designer of the Red Tower, was born in Graz.", 5),
        ("The documents do not say when, but Anna Brandt was born in Graz.", 5),
        ("Graz, trams.", 5),  # of two words one is in the evidence
        # 2: it holds the reference among other matter
        ("Graz, trams, museums.", 2),
        ("Graz hosts opera festivals, football clubs, breweries, museums and trams.", 2),
        # 3: it covers a part of the evidence, supported, without the reference
        ("The Red Tower was designed by Anna Brandt in 1890.", 3),
        # 2: it covers a part of the evidence among other matter
        (
            EVIDENCE[0] + " Paris hosts opera festivals, football clubs, breweries, museums and trams.",
            2,
        ),
        # 4: neither
        ("She was born in Paris.", 4),
        ("Grazing sheep like the tower.", 4),  # whole words
        ("The river does not reach the sea.", 4),  # not about the documents
    ],
)
def test_each_rule(answer: str, label: int, tools: Tools) -> None:
    assert judge(answer, tools)["label"] == label


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Yes.", 5),
        ("Yes, both of them.", 5),
        ("No, she was born in Graz.", 4),
        (" ".join(EVIDENCE), 5),  # all of the evidence decides it
        (EVIDENCE[1], 3),  # a part of it does not
        ("It is hard to say.", 4),
    ],
)
def test_yes_and_no(answer: str, label: int, tools: Tools) -> None:
    assert judge(answer, tools, reference="yes")["label"] == label


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Red Tower", 5),
        (EVIDENCE[0], 3),  # names it, as the question does
        (" ".join(EVIDENCE), 5),
        ("Blue Tower", 4),
    ],
)
def test_a_choice_that_the_question_names(answer: str, label: int, tools: Tools) -> None:
    query = "Which is older, the Red Tower or the Blue Tower?"
    assert judge(answer, tools, reference="the Red Tower", query=query)["label"] == label


@pytest.mark.parametrize(
    ("reference", "answer", "label"),
    [
        ("yes", "Paris", 4),
        ("no", LACK_OF_INFORMATION, 1),
        ("yes", "Yes, in 1890.", 5),
        ("Graz", "Linz", 4),
        ("Graz", "Graz", 5),
    ],
)
def test_without_evidence_no_answer_covers_all_of_it(reference: str, answer: str, label: int, tools: Tools) -> None:
    topics = pd.DataFrame({"qid": ["q"], "query": ["Was she born in Graz?"], "answer": [reference]})
    evidence = pd.DataFrame({"qid": [], "part": [], "docno": [], "text": []})
    answers = pd.DataFrame({"qid": ["q"], "n_tokens": [100], "answer": [answer]})
    assert LexicalJudge().judge(topics, evidence, answers, tools)["label"].tolist() == [label]


def test_most_words_of_a_long_reference(tools: Tools) -> None:
    assert judge("Born in Graz, Styria.", tools, reference="Graz, Styria, Austria")["label"] == 3
    assert judge("Born in Austria.", tools, reference="Graz, Styria, Austria")["label"] == 4


@pytest.mark.parametrize(("answer", "label"), [("Anna Weber", 4), ("Anna Maria Weber", 3)])
def test_half_of_the_words_of_a_reference_is_not_most(answer: str, label: int, tools: Tools) -> None:
    assert judge(answer, tools, reference="Anna Maria Brandt Weber")["label"] == label


@pytest.mark.parametrize(("answer", "label"), [("Anna Brandt was born.", 3), ("Brandt was born.", 4)])
def test_a_part_is_covered_from_three_of_four_words_on(answer: str, label: int, tools: Tools) -> None:
    assert judge(answer, tools, reference="Vienna")["label"] == label


def test_the_rule_stands_in_the_reason_and_nothing_is_paid(tools: Tools) -> None:
    verdict = judge("Graz", tools)
    assert verdict["reason"] == "holds the reference answer, supported by the evidence"
    assert (verdict["status"], verdict["cost_usd"], verdict["prompt_tokens"]) == ("ok", 0, 0)


def test_no_answer_has_no_verdict(tools: Tools) -> None:
    verdict = judge(None, tools)
    assert pd.isna(verdict["label"])
    assert verdict["status"] == "no answer"


def test_words() -> None:
    assert words_of("The Café's 1,200 ﬁles, an O’Neill!") == ["café", "1200", "files", "o'neill"]
    assert words_of("她生于北京。हिन्दी") == ["她", "生", "于", "北", "京", "हिन्दी"]


def test_a_chinese_reference_stands_within_an_answer_without_spaces(tools: Tools) -> None:
    found = [
        judge(answer, tools, "格拉茨", "她在哪里出生？")["label"] for answer in ("她在格拉茨出生。", "她在维也纳出生。")
    ]
    assert found == [5, 4]


def test_bad_input_is_named(tools: Tools) -> None:
    with pytest.raises(ConfigError, match=r"judge\.cover=0"):
        LexicalJudge(cover=0)
    topics = pd.DataFrame({"qid": ["q"], "query": ["?"], "answer": ["x"]})
    none = frames.empty("evidence")
    topics.loc[1] = ["r", "?", None]
    for qid, what in (("r", "reference"), ("z", "topic")):
        answers = pd.DataFrame({"qid": [qid], "n_tokens": [1], "answer": ["x"]})
        with pytest.raises(DataError, match=f"{what}.*'{qid}'|'{qid}'.*{what}"):
            LexicalJudge().judge(topics, none, answers, tools)


def test_the_best_of_several_references_counts_and_no_answer_is_right_of_an_unanswerable(
    tools: Tools,
) -> None:
    topics = pd.DataFrame(
        {
            "qid": ["s", "u"],
            "query": ["Who wrote it?", "Who wrote it?"],
            "answer": ["Anna Berg", None],
            "answers": [["Anna Berg", "A. Berg"], None],
            "unanswerable": [False, True],
        }
    )
    evidence = pd.DataFrame({"qid": ["u"], "part": [0], "docno": ["d"], "text": ["Carl Dorn wrote it."]})
    said = ["A. Berg", "Carl Dorn wrote it.", "The documents do not say.", "Anna Berg"]
    answers = pd.DataFrame({"qid": ["s", "u", "u", "s"], "n_tokens": [1, 1, 2, 2], "answer": said})
    assert LexicalJudge().judge(topics, evidence, answers, tools)["label"].tolist() == [5, 4, 1, 5]
