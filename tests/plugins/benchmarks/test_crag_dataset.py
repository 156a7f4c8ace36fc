from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from loader_files import checked, json_lines, named_or_dropped
from ragauge.contract.errors import ConfigError
from ragauge.plugins.benchmarks.crag import CRAG, text_of_html

PAGE = """<!doctype html><html><head><title>No title here</title><style>p { color: red }</style>
<script>if (1 < 2) { document.write("<p>never</p>") }</script></head>
<body><nav><ul><li>Home<li>About</ul></nav>
<p>Anna&#x27;s tower <b>stands</b> in<br>Graz. <p>It is 40&nbsp;m high.<table><tr><td>built<td>1901</table>
<noscript>Switch scripts on.</noscript></body>"""


def result(name: str, snippet: str, page: str = PAGE) -> dict[str, str]:
    return {
        "page_name": name,
        "page_url": "https://example.net/" + name,
        "page_snippet": snippet,
        "page_result": page,
        "page_last_modified": "",
    }


TOWER = result("Anna&#x27;s Tower |  Graz", "Anna&#x27;s tower stands in Graz.")
ROWS: list[dict[str, Any]] = [
    {
        "interaction_id": "3dbed55e-66a3",
        "query_time": "02/28/2024, 10:04:54 PT",
        "domain": "open",
        "question_type": "simple",
        "static_or_dynamic": "static",
        "query": " where is the tower? ",
        "answer": "graz",
        "alt_ans": ["in graz", 2, " ", "graz"],
        "split": 0,
        "popularity": "",
        "search_results": [TOWER, TOWER, result("Empty", "", "")],
    },
    {
        "interaction_id": "55b219e5-ba31",
        "query_time": "03/05/2024, 23:18:31 PT",
        "domain": "finance",
        "question_type": "false_premise",
        "static_or_dynamic": "real-time",
        "query": "when did the tower fall?",
        "answer": "Invalid question.",
        "alt_ans": ["it stands"],
        "split": 1,
        "popularity": "tail",
        "search_results": [TOWER],
    },
]


def write(folder: Path, rows: list[Any], **fields: Any) -> CRAG:
    return CRAG(path=json_lines(folder / "crag_dev.jsonl.bz2", rows), **fields)


def test_distinct_snippets_are_the_documents(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS).load())
    assert data.docs.values.tolist() == [["Anna's_Tower_|_Graz", "Anna's Tower | Graz", "Anna's tower stands in Graz."]]
    assert data.evidence.empty


def test_type_dynamics_domain_and_popularity_are_attributes(tmp_path: Path) -> None:
    topics = write(tmp_path, ROWS).load().topics
    assert topics["query"].tolist() == ["where is the tower?", "when did the tower fall?"]
    columns = ["question_type", "dynamics", "domain", "query_time"]
    assert topics[columns].values.tolist() == [
        ["simple", "static", "open", "02/28/2024, 10:04:54 PT"],
        ["false_premise", "real-time", "finance", "03/05/2024, 23:18:31 PT"],
    ]
    assert topics["popularity"].isna().tolist() == [True, False]  # of the web, in no class


@pytest.mark.parametrize("answer", ["invalid question", "Invalid question.", "I don’t know"])
def test_invalid_question_is_unanswerable(tmp_path: Path, answer: str) -> None:
    rows = [ROWS[0], {**ROWS[1], "answer": answer}]
    topics = checked(write(tmp_path, rows).load()).topics
    assert topics["unanswerable"].tolist() == [False, True]
    assert topics["answers"].tolist() == [["graz", "in graz", "2"], []]
    topics = checked(write(tmp_path, rows, invalid="reference").load()).topics
    assert "unanswerable" not in topics
    assert topics["answers"].tolist() == [["graz", "in graz", "2"], [answer, "it stands"]]


def test_false_premise_with_an_answer_in_words_keeps_it(tmp_path: Path) -> None:
    rows = [{**ROWS[1], "answer": "it never fell", "alt_ans": ["invalid question"]}]
    topics = write(tmp_path, rows).load().topics
    assert topics["answer"].tolist() == ["it never fell"]
    assert "answers" not in topics


def test_older_files_print_their_alternative_answers(tmp_path: Path) -> None:
    older = {key: value for key, value in ROWS[0].items() if key != "alt_ans"}
    rows = [{**older, "alternative_answers": "['in graz']"}, {**ROWS[1], "alt_ans": None},
            {**older, "interaction_id": "third", "alternative_answers": " "}]  # fmt: skip
    assert write(tmp_path, rows).load().topics["answers"].tolist() == [["graz", "in graz"], [], ["graz"]]


def test_pages_are_read_as_text(tmp_path: Path) -> None:
    data = checked(write(tmp_path, ROWS, documents="pages").load())
    assert data.docs["text"].tolist() == [
        "Home\n\nAbout\n\nAnna's tower stands in Graz.\n\nIt is 40 m high.\n\nbuilt 1901"
    ]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("no tags & no end", "no tags & no end"),
        ("<p>a<b>b</b>c", "abc"),
        ("<noscript><p>off</p></noscript>on", "on"),
        ("<select><option>1</select>on</select>!", "on!"),
        ("a<!-- b --><script>c</script>d", "ad"),
        ("<p>1 < 2 &lt; 3</p></p></div>", "1 < 2 < 3"),
    ],
)
def test_text_of_broken_pages(page: str, text: str) -> None:
    assert text_of_html(page) == text


def test_deeply_nested_page_is_read() -> None:
    assert text_of_html("<div>" * 100_000 + "deep") == "deep"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"search_results": None}, "key 'search_results' is not a list"),
        ({"search_results": ["page"]}, "entry 0 of 'search_results': expected a JSON object"),
        (
            {"search_results": [{"page_name": "x"}]},
            "entry 0 of 'search_results': key 'page_snippet' is missing",
        ),
        ({"search_results": [{**TOWER, "page_name": 7}]}, "entry 0 of 'search_results': 'page_name'"),
        ({"answer": None}, "'answer' is not a string"),
        ({"answer": "x", "alt_ans": "graz"}, "'alt_ans' is no printed list"),
        ({"answer": "x", "alt_ans": {}}, "key 'alt_ans' is not a list"),
        ({"domain": 7}, "'domain' is not a string"),
        ({"query": ""}, "query is empty"),
    ],
)
def test_bad_row_is_named_or_dropped(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = copy.deepcopy(ROWS)
    rows[1].update(change)
    where = f"{tmp_path / 'crag_dev.jsonl.bz2'}, line 2, qid '55b219e5-ba31'"
    named_or_dropped(lambda **of: write(tmp_path, rows, **of), where, field, ["3dbed55e-66a3"])


def test_choices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.documents"):
        CRAG(documents="html")
    with pytest.raises(ConfigError, match=r"dataset\.invalid"):
        CRAG(invalid="drop")
    assert len(write(tmp_path, ROWS, limit=1).load().topics) == 1
