from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.llms.prompts import fill, load_prompt


def test_the_shipped_prompt_a_text_and_a_file_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_text("From a file: $question\n", encoding="utf-8")
    assert "$question" in load_prompt(None, "answer_without_documents.txt", ("question",))
    assert load_prompt("A text: $question", "x.txt", ("question",)) == "A text: $question"
    assert load_prompt(str(file), "x.txt", ("question",)) == "From a file: $question"


def test_a_file_of_another_suffix_is_read_and_not_sent_as_the_prompt(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.md").write_text("From Markdown: $question\n", encoding="utf-8")
    assert load_prompt("own.md", "x.txt", ("question",)) == "From Markdown: $question"
    with pytest.raises(ConfigError, match=r"^retriever\.prompt=no/such\.md: the file cannot be read: No such file"):
        load_prompt("no/such.md", "x.txt", ("question",), key="retriever.prompt")
    Path("latin.txt").write_bytes("Größe? $question".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"^prompt=latin\.txt: the file cannot be read: not UTF-8"):
        load_prompt("latin.txt", "x.txt", ("question",))


def test_values_are_filled_in_as_they_are() -> None:
    filled = fill("Q: $question {braces} $$5", question="what is $question or {x}?")
    assert filled == "Q: what is $question or {x}? {braces} $5"


@pytest.mark.parametrize("prompt", ["none", "$question and $other", "$question $", "no_such_file.txt"])
def test_a_prompt_that_cannot_be_filled_is_refused(prompt: str) -> None:
    with pytest.raises(ConfigError, match="prompt"):
        load_prompt(prompt, "x.txt", ("question",))
