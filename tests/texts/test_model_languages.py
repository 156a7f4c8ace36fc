"""The languages of encoders: of well-known names, of model cards, and none of what is multilingual or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.texts.model_languages import languages_of_model


@pytest.mark.parametrize(
    ("model", "languages"),
    [
        ("all-MiniLM-L6-v2", {"english"}),
        ("sentence-transformers/all-mpnet-base-v2", {"english"}),
        ("sentence-transformers/multi-qa-MiniLM-L6-cos-v1", {"english"}),
        ("BAAI/bge-small-en-v1.5", {"english"}),
        ("BAAI/bge-base-zh-v1.5", {"chinese"}),
        ("intfloat/e5-base-v2", {"english"}),
        ("thenlper/gte-large", {"english"}),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", {"english"}),
        ("naver/splade-cocondenser-ensembledistil", {"english"}),
        ("intfloat/multilingual-e5-base", set()),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", set()),
        ("sentence-transformers/msmarco-distilbert-multilingual-en-de-v2-tmp-trained-scratch", set()),
        ("BAAI/bge-m3", set()),
        ("Alibaba-NLP/gte-multilingual-base", set()),
        ("Alibaba-NLP/gte-Qwen2-7B-instruct", set()),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", set()),
        ("facebook/mcontriever", set()),
        ("jinaai/jina-embeddings-v2-base-de", set()),
        ("our-own-model", set()),
    ],
)
def test_languages_of_names(model: str, languages: set[str]) -> None:
    assert languages_of_model(model) == languages


@pytest.mark.parametrize(
    ("head", "languages"),
    [
        ("---\nlanguage: en\ntags: [x]\n---\n# Model", {"english"}),
        ("---\nlanguage:\n- de\n- fi\n---\n", {"german", "finnish"}),
        ("---\nlanguage: [no, sw]\n---\n", {"norwegian", "sw"}),
        ("---\nlanguage: multilingual\n---\n", set()),
        ("---\nlanguage: [en, multilingual]\n---\n", set()),
        ("---\nlicense: mit\n---\n", {"english"}),  # its name says it
        ("---\nlanguage: {\n---\n", {"english"}),
        ("---\nen\n---\n", {"english"}),
        ("# no head", {"english"}),
    ],
)
def test_languages_of_a_model_card(head: str, languages: set[str], tmp_path: Path) -> None:
    folder = tmp_path / "all-MiniLM-L6-v2"
    folder.mkdir()
    (folder / "README.md").write_text(head)
    assert languages_of_model(str(folder)) == languages
