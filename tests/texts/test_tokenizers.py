"""Offsets by hand, tokenizers loaded from files, and which tokenizers may be stitched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from counted_progress import CountedProgress
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.texts import tokenizers
from ragauge.texts.model_files import model_path
from ragauge.texts.tokenizers import _SPACE_FIRST_PATTERNS, HuggingFaceTokenizer, WordTokenizer, _stitching

MINILM = "all-MiniLM-L6-v2"


def test_words_are_runs_of_word_characters_and_single_marks() -> None:
    [offsets] = WordTokenizer().offsets(["Él said: 北京 \U0001f600!"])
    assert offsets.tolist() == [[0, 2], [3, 7], [7, 8], [9, 10], [10, 11], [12, 13], [13, 14]]
    assert offsets.dtype == np.int64


def test_a_character_of_thai_and_a_word_of_hindi_keep_their_marks() -> None:
    texts = ["รุ้ง", "हिन्दी भाषा।", "タワーA1"]
    found = [[text[a:b] for a, b in spans] for text, spans in zip(texts, WordTokenizer().offsets(texts), strict=True)]
    assert found == [["รุ้", "ง"], ["हिन्दी", "भाषा", "।"], ["タ", "ワ", "ー", "A1"]]


def test_words_of_nothing() -> None:
    assert [o.shape for o in WordTokenizer().offsets(["", " \n"])] == [(0, 2), (0, 2)]
    assert WordTokenizer().offsets([]) == []


def test_wordpiece_offsets_are_characters_without_special_tokens() -> None:
    tokenizer = HuggingFaceTokenizer(MINILM)
    text = "Héllo \U0001f600 embeddings."
    [offsets] = tokenizer.offsets([text])
    pieces = [text[a:b] for a, b in offsets]
    assert pieces == ["Héllo", "\U0001f600", "em", "bed", "ding", "s", "."]
    assert tokenizer.name == MINILM


def test_long_texts_are_neither_cut_nor_padded() -> None:
    tokenizer = HuggingFaceTokenizer(MINILM)
    found = tokenizer.offsets(["word " * 1000, "word", ""])
    assert [len(o) for o in found] == [1000, 1, 0]
    assert {o.dtype for o in found} == {np.dtype(np.int64)}


def test_texts_in_batches_have_the_offsets_of_each_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = CountedProgress()
    monkeypatch.setattr(tokenizers, "progress", counted)
    monkeypatch.setattr(tokenizers, "_BATCH", 2)
    texts = ["one", "two words", "", "three more words", "five"]
    found = HuggingFaceTokenizer(MINILM).offsets(texts)
    assert [[text[a:b] for a, b in of] for text, of in zip(texts, found, strict=True)] == [t.split() for t in texts]
    assert counted.done == {"tokenising": (5, 5)}


def test_a_lone_surrogate_is_one_character() -> None:
    [offsets] = HuggingFaceTokenizer(MINILM).offsets(["\ud800 é x"])
    assert offsets[-1].tolist() == [4, 5]


def test_identity_is_the_content_not_the_path(tmp_path: Path) -> None:
    source = model_path(MINILM)
    assert source is not None
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        shutil.copy(source / "tokenizer.json", tmp_path / name)
    by_name = HuggingFaceTokenizer(MINILM)
    by_folder = HuggingFaceTokenizer(str(tmp_path / "here"))
    by_file = HuggingFaceTokenizer(str(tmp_path / "there" / "tokenizer.json"))
    assert identity(by_name) == identity(by_folder) == identity(by_file)
    assert by_folder.name == "here"
    assert by_file.name == "there"
    assert str(tmp_path) not in json.dumps(identity(by_file))

    changed = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    changed["normalizer"]["lowercase"] = False
    (tmp_path / "here" / "other.json").write_text(json.dumps(changed), encoding="utf-8")
    other = HuggingFaceTokenizer(str(tmp_path / "here" / "other.json"))
    assert identity(other) != identity(by_name)


def test_a_carried_model_is_known_by_both_of_its_names() -> None:
    assert model_path(MINILM) == model_path(f"sentence-transformers/{MINILM}")
    assert model_path("another") is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        identity(HuggingFaceTokenizer(str(tmp_path)))
    with pytest.raises(ConfigError, match="there is no file"):
        identity(HuggingFaceTokenizer(str(tmp_path / "nowhere")))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    for name, content in {"a.json": "{}", "b.json": "no JSON", "c.json": "[]"}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(ConfigError, match=r"is no tokenizer\.json"):
            HuggingFaceTokenizer(str(tmp_path / name)).offsets(["x"])


def test_a_hub_that_fails_says_how_to_give_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hub(*args: object, **kwargs: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", no_hub)
    with pytest.raises(ConfigError, match=r"tokenizer\.model=/path"):
        HuggingFaceTokenizer("someone/some-model").offsets(["x"])


def test_the_hub_is_asked_for_what_is_not_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = model_path(MINILM)
    assert carried is not None

    def hub(name: str, file: str, local_files_only: bool = False) -> str:
        if local_files_only:
            raise FileNotFoundError("not fetched yet")
        assert (name, file) == ("someone/their-model", "tokenizer.json")
        return str(carried / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    tokenizer = HuggingFaceTokenizer("someone/their-model")
    assert tokenizer.name == "someone/their-model"
    assert identity(tokenizer) == identity(HuggingFaceTokenizer(MINILM))


@pytest.mark.parametrize("model", ["", "  ", None, 3])
def test_a_model_is_needed(model: object) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.model"):
        HuggingFaceTokenizer(model)  # type: ignore[arg-type]


def spec(pre: object, normalizer: object = None, **added: object) -> dict[str, object]:
    tokens = [{"content": "<x>", "lstrip": False, "rstrip": False} | added]
    return {"pre_tokenizer": pre, "normalizer": normalizer, "added_tokens": tokens}


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
AFTER_SPLIT = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def split(pattern: str, last: dict[str, object] = AFTER_SPLIT, **other: object) -> dict[str, object]:
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"} | other
    return {"type": "Sequence", "pretokenizers": [step, last]}


def normalizers(*types: str) -> dict[str, object]:
    return {"type": "Sequence", "normalizers": [{"type": name} for name in types]}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (spec({"type": "BertPreTokenizer"}, {"type": "BertNormalizer"}), "free"),
        (spec({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Digits"}]}), "free"),
        (spec({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Whitespace"}]}), "joined"),
        (spec({"type": "WhitespaceSplit"}, {"type": "Precompiled"}), "joined"),
        (spec({"type": "Whitespace"}, normalizers(*tokenizers._LOCAL)), "free"),
        (spec(BYTES, normalizers(*tokenizers._LOCAL_KEEPING_SPACE)), "space"),
        (spec({"type": "Punctuation"}), "joined"),
        (spec(BYTES), "space"),
        (spec(BYTES, normalizers("NFC", "Lowercase")), "space"),
        (spec(BYTES, {"type": "NFKC"}), "joined"),
        (spec(AFTER_SPLIT), "joined"),
        (spec({"type": "Metaspace", "prepend_scheme": "first", "split": True}), "space"),
        (spec({"type": "Metaspace", "split": False}), "joined"),
        (spec(split(max(_SPACE_FIRST_PATTERNS))), "space"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), behavior="Removed")), "joined"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), invert=False)), "space"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), invert=True)), "joined"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), AFTER_SPLIT | {"use_regex": True})), "joined"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), AFTER_SPLIT | {"add_prefix_space": True})), "joined"),
        (spec(split(max(_SPACE_FIRST_PATTERNS), {"type": "ByteLevel"})), "joined"),  # both are its defaults
        (spec({"type": "ByteLevel"}), "space"),
        (spec({"type": "Metaspace"}), "space"),
        (spec(split(r"\s+")), "joined"),
        (spec(None), "joined"),
        (spec(BYTES, lstrip=True), "joined"),
        (spec(BYTES, content="two words"), "joined"),
    ],
)
def test_only_known_tokenizers_are_stitched(found: dict[str, object], expected: str) -> None:
    assert _stitching(found) == expected
