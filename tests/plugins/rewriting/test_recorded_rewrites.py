"""Passages and paraphrases from a file: what may stand in it, and what is told of what may not."""

import json
import logging

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.rewriting.recorded import Recorded
from ragauge.retrieval.searching import check_queries

TOPICS = pd.DataFrame({"qid": ["a", "b"], "query": ["Who?", "Where?"]}, dtype="str")


def written(tmp_path, *lines, topics=TOPICS, **settings):
    file = tmp_path / "rewritten.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    found = Recorded(path=file, **settings).rewrite(topics, None, None, None)
    return check_queries(found, topics, "a test")[["qid", "search", "query", "role", "origin"]].to_numpy().tolist()


def test_passages_are_one_search(tmp_path):
    lines = [{"qid": "b", "passage": "In Graz."}, {"qid": "a", "passages": ["Anna.", "Bert."]}, ""]
    assert written(tmp_path, *lines) == [
        ["a", 0, "Who?", "query", "question"],
        ["a", 0, "Anna.", "passage", "recorded"],
        ["a", 0, "Bert.", "passage", "recorded"],
        ["b", 0, "Where?", "query", "question"],
        ["b", 0, "In Graz.", "passage", "recorded"],
    ]
    alone = written(tmp_path, *lines, with_question=False)
    assert [row[2] for row in alone] == ["Anna.", "Bert.", "In Graz."]


def test_queries_are_a_search_each_and_lines_add_up(tmp_path):
    lines = [
        {"qid": "a", "query": "Which one?"},
        {"qid": "a", "query": "who"},
        {"qid": "b", "queries": ["Place"]},
    ]
    assert written(tmp_path, *lines) == [
        ["a", 0, "Who?", "query", "question"],
        ["a", 1, "Which one", "query", "recorded"],
        ["b", 0, "Where?", "query", "question"],
        ["b", 1, "Place", "query", "recorded"],
    ]
    alone = written(tmp_path, *lines, with_question=False)
    assert [row[1:3] for row in alone] == [[0, "Which one"], [1, "who"], [0, "Place"]]
    as_passages = written(tmp_path, *lines, role="passage", with_question=False)
    assert [row[1:4] for row in as_passages] == [
        [0, "Which one?", "passage"],
        [0, "who", "passage"],
        [0, "Place", "passage"],
    ]


def test_a_topic_that_is_not_in_the_file_is_searched_by_its_question_and_told(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        topics = pd.DataFrame({"qid": list("abcd"), "query": ["Who?", "Where?", "?!", "When?"]}, dtype="str")
        lines = {"qid": "b", "passage": "Graz \ud800"}, {"qid": "z", "passage": "x"}
        found = written(tmp_path, *lines, topics=topics, with_question=False)
    assert found == [
        ["a", 0, "Who?", "query", "failed"],
        ["b", 0, "Graz \ufffd", "passage", "recorded"],  # half a character of JSON
        ["c", 0, "?!", "query", "question"],  # nothing could be written for it
        ["d", 0, "When?", "query", "failed"],
    ]
    assert "3 of 4 topics, such as qid='a', are not in" in caplog.text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not a line of JSON"),
        ("[1]", "expected a JSON object"),
        ({"passage": "x"}, "'qid' must be a text, found None"),
        ({"qid": 7, "passage": "x"}, "'qid' must be a text, found 7"),
        ({"qid": "", "passage": "x"}, "'qid' must be a text, found ''"),
        ({"qid": "b"}, r"\(qid='b'\): give one of passage, passages, query, queries"),
        ({"qid": "b", "passage": "x", "query": "y"}, "give one of"),
        ({"qid": "b", "passage": ""}, "'passage' holds a text without a word"),
        ({"qid": "b", "passage": " ?! "}, "'passage' holds a text without a word"),
        ({"qid": "b", "passages": []}, "'passages' holds a text without a word"),
        ({"qid": "b", "passage": None}, "a passage must be a text, found None"),
        ({"qid": "b", "passage": ["x"]}, "a passage must be a text"),
        (
            {"qid": "b", "query": "x"},
            "a passage at .*line 1 and a query at .*line 2: give one kind, or rewriter.role",
        ),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, told):
    with pytest.raises(DataError, match=told) as caught:
        written(tmp_path, {"qid": "a", "passage": "x"}, line)
    assert "line 2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_other_topics_and_no_file(tmp_path):
    with pytest.raises(DataError, match="no line is of a topic of this dataset, such as qid='a'"):
        written(tmp_path, {"qid": "z", "passage": "x"})
    with pytest.raises(DataError, match="no line is of a topic"):
        written(tmp_path, "")
    with pytest.raises(ConfigError, match=r"rewriter\.path is not set"):
        Recorded().files()
    with pytest.raises(ConfigError, match=r"rewriter\.path=nowhere\.jsonl: there is no such file"):
        Recorded(path="nowhere.jsonl").files()
