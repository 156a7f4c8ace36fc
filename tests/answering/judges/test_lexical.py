import pandas as pd
import pytest

from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.answering.judges import LexicalJudge
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError

EVIDENCE = ["The Red Tower was designed by Anna Brandt in 1890.", "Anna Brandt was born in Graz."]


# A question for the reference that it is asked with, and what a rule says in `reason`.
QUERIES = {"the Red Tower": "Which is older, the Red Tower or the Blue Tower?", "格拉茨": "她在哪里出生？"}
RULES = {
    "lack": "says that information is lacking",
    "nothing": "says nothing",
    "opposite": "begins with the opposite of the reference answer",
    "holds": "holds the reference answer",
    "covers": "covers a part of the evidence",
    "most": "has most words of the reference answer",
    "neither": "holds neither the reference answer nor a part of the evidence",
}
SUPPORT = {5: ", supported by the evidence", 3: ", supported by the evidence", 2: ", mostly not in the evidence"}
# Reference, answer, and the class and the rule that it gets.
ANSWERS = [
    ("Graz", LACK_OF_INFORMATION, "1 lack"),
    ("Graz", "The documents do not mention where she was born.", "1 lack"),
    ("Graz", "There is insufficient information.", "1 lack"),
    ("Graz", "The question cannot be answered.", "1 lack"),
    ("Graz", "I don't know.", "1 lack"),
    ("Graz", "...", "1 nothing"),
    ("Graz", "Graz", "5 holds"),
    ("Graz", "She was born in GRAZ!", "5 holds"),
    ("Graz", "Anna Brandt, designer of the Red Tower, was born in Graz.", "5 holds"),
    ("Graz", "The documents do not say when, but Anna Brandt was born in Graz.", "5 holds"),
    ("Graz", "Graz, trams.", "5 holds"),  # of two words one is in the evidence
    ("Graz", "Graz, trams, museums.", "2 holds"),
    ("Graz", "Graz hosts opera festivals, football clubs, breweries, museums and trams.", "2 holds"),
    ("Graz", EVIDENCE[0], "3 covers"),
    ("Graz", f"{EVIDENCE[0]} Paris hosts opera festivals, football clubs, breweries and trams.", "2 covers"),
    ("Graz", "She was born in Paris.", "4 neither"),
    ("Graz", "Grazing sheep like the tower.", "4 neither"),  # whole words
    ("Graz", "The river does not reach the sea.", "4 neither"),  # not about the documents
    ("yes", "Yes.", "5 holds"),
    ("yes", "Yes, both of them.", "5 holds"),
    ("yes", "No, she was born in Graz.", "4 opposite"),
    ("no", "Yes, she was.", "4 opposite"),
    ("yes", " ".join(EVIDENCE), "5 holds"),  # all of the evidence decides it
    ("yes", EVIDENCE[1], "3 covers"),  # a part of it does not
    ("yes", "It is hard to say.", "4 neither"),
    ("the Red Tower", "Red Tower", "5 holds"),
    ("the Red Tower", EVIDENCE[0], "3 covers"),  # names it, as the question does
    ("the Red Tower", " ".join(EVIDENCE), "5 holds"),
    ("the Red Tower", "Blue Tower", "4 neither"),
    ("Graz, Styria, Austria", "Born in Graz, Styria.", "3 most"),
    ("Graz, Styria, Austria", "Graz, Styria, trams, football, museums and breweries.", "2 most"),
    ("Graz, Styria, Austria", "Born in Austria.", "4 neither"),
    ("Anna Maria Brandt Weber", "Anna Weber", "4 neither"),  # half of the words is not most
    ("Anna Maria Brandt Weber", "Anna Maria Weber", "3 most"),
    ("Vienna", "Anna Brandt was born.", "3 covers"),  # three of the part's four words
    ("Vienna", "Brandt was born.", "4 neither"),
    # Chinese has no spaces; forms, apostrophes, articles and thousands do not count.
    ("格拉茨", "她在格拉茨出生。", "5 holds"),
    ("格拉茨", "她在维也纳出生。", "4 neither"),
    ("हिन्दी", "हिन्दी।", "5 holds"),
    ("café 1200 files o'neill", "The Café's 1,200 ﬁles, an O’Neill!", "5 holds"),
]
WITHOUT_EVIDENCE = [
    ("yes", "Paris", "4 neither"),
    ("no", LACK_OF_INFORMATION, "1 lack"),
    ("yes", "Yes, in 1890.", "5 holds"),
    ("Graz", "Linz", "4 neither"),
    ("Graz", "Graz hosts opera festivals.", "5 holds"),
]


@pytest.mark.parametrize("evidence", [EVIDENCE, []])
def test_each_rule(evidence: list[str], tools: Tools) -> None:
    table = ANSWERS if evidence else WITHOUT_EVIDENCE
    qids = [f"q{i}" for i in range(len(table))]
    queries = [QUERIES.get(reference, "Where was its designer born?") for reference, _, _ in table]
    topics = pd.DataFrame({"qid": qids, "query": queries, "answer": [row[0] for row in table]})
    parts = [(qid, part, None, text) for qid in qids for part, text in [*enumerate(evidence)][::-1]]
    answers = pd.DataFrame({"qid": [*qids, "q0"], "n_tokens": [100] * len(table) + [200]})
    answers["answer"] = [*(row[1] for row in table), None]
    found = LexicalJudge().judge(topics, pd.DataFrame(parts, columns=["qid", "part", "docno", "text"]), answers, tools)
    frames.check("verdicts", found)
    assert found["status"].tolist() == ["ok"] * len(table) + ["no answer"]
    assert not found[["prompt_tokens", "completion_tokens", "cost_usd", "calls"]].any(axis=None)
    for (_, answer, verdict), label, reason in zip(table, found["label"], found["reason"], strict=False):
        wanted, _, rule = verdict.partition(" ")
        so = SUPPORT[int(wanted)] if rule in ("holds", "covers", "most") else ""
        assert (label, reason) == (int(wanted), RULES[rule] + so), answer
    assert pd.isna(found["label"].iloc[-1])


@pytest.mark.parametrize(
    ("settings", "labels"), [({}, [5, 4]), ({"support": 1}, [2, 4]), ({"cover": 0.5}, [5, 3]), ({"cover": 1}, [5, 4])]
)
def test_shares_from_which_an_answer_is_supported_and_covers(
    settings: dict[str, float], labels: list[int], tools: Tools
) -> None:
    topics = pd.DataFrame({"qid": ["q", "r"], "query": "Where?", "answer": ["Graz", "Vienna"]})
    evidence = pd.DataFrame({"qid": ["q", "r"], "part": 0, "docno": None, "text": EVIDENCE[1]})
    answers = pd.DataFrame({"qid": ["q", "r"], "n_tokens": 100, "answer": ["Graz, trams.", "Anna Brandt."]})
    assert LexicalJudge(**settings).judge(topics, evidence, answers, tools)["label"].tolist() == labels


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
