"""Detects the language of a text: by script, and in Latin script by function words, letters and endings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice

from ragauge.contract.checks import require_choice
from ragauge.texts.words import FUNCTION_WORDS, STOP_WORDS

AUTO = "auto"
CODES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fa": "persian",
    "fi": "finnish", "fr": "french", "he": "hebrew", "hi": "hindi", "hu": "hungarian", "it": "italian",
    "ja": "japanese", "ko": "korean", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "th": "thai", "tr": "turkish", "uk": "ukrainian",
    "ur": "urdu", "vi": "vietnamese", "zh": "chinese",
}  # fmt: skip
"""The languages that `language_of` knows, by their ISO 639-1 codes."""

# A script's letters, and how many Latin letters one of them is worth: a word of Chinese has about two.
_SCRIPTS = {
    "arabic": ("\u0620-\u064a\u066e-\u06d3", 1), "russian": ("\u0400-\u04ff", 1), "greek": ("\u0370-\u03ff", 1),
    "hebrew": ("\u05d0-\u05ea", 1), "hindi": ("\u0900-\u0963", 1), "thai": ("\u0e00-\u0e7f", 1),
    "korean": ("\uac00-\ud7a3", 2), "japanese": ("\u3040-\u30ff", 2), "chinese": ("\u3400-\u9fff", 3),
    "": ("A-Za-z\u00c0-\u024f\u1e00-\u1eff", 1),
}  # fmt: skip
_LETTERS = {name: (re.compile(f"[{letters}]"), worth) for name, (letters, worth) in _SCRIPTS.items()}
# Letters that tell languages of one script apart; a tenth of the words have to hold one.
_TELLING = {"arabic": (("urdu", "ٹڈڑںےہ"), ("persian", "پچژگکی")), "russian": (("ukrainian", "іїєґ"),)}
# Latin letters that few of these languages write, and parts of words that are frequent in one.
_OF_LETTERS = {
    "ß": "german", "ä": "german finnish swedish", "ö": "german finnish swedish turkish hungarian",
    "ü": "german turkish hungarian", "ğış": "turkish", "å": "danish norwegian swedish", "æø": "danish norwegian",
    "ñ¿¡": "spanish", "ãõ": "portuguese", "œêèû": "french", "ç": "french portuguese turkish", "ìò": "italian",
    "țșţ": "romanian", "ă": "romanian vietnamese", "ąęłńśźż": "polish", "őű": "hungarian",
    "đơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ": "vietnamese",
}  # fmt: skip
_ENDINGS = {
    "finnish": r"\w{3,}(?:ss[aä]|st[aä]|ll[aä]|lt[aä]|lle|ksi|nen|iin|ään|aan)",
    "german": r"\w*(?:sch|pf|tz|ck|ung|heit|keit|lich|chte)\w*",
    "turkish": r"\w{3,}(?:l[ae]r[ıi]?|[ıiuü]nd[ae]n?|[ıiuü]n[ıiuü]n|mişt?i?r?|maktad?ı?r?|dır|dir|yor)",
}
_ENDS = {language: re.compile(pattern) for language, pattern in _ENDINGS.items()}
_WORD = re.compile(r"[^\W\d_]+|[¿¡]")
_CAPITALISED = re.compile("(?<![A-Za-zÀ-ɏ])[A-ZÀ-ÖØ-Þ][A-Za-zÀ-ɏḀ-ỿ]*")
_MOST = 2000  # characters that are looked at
_TEXTS = 1000  # of a corpus
_OF_AN_ENDING = 0.3  # evidence, where a function word that one language has is 1
_LEAST, _PER_WORD, _AHEAD = 0.5, 0.09, 1.2  # evidence of the best language: at least, per word, over the second's


def _holders() -> dict[str, tuple[str, ...]]:
    found = defaultdict(list)
    for language, words in {"english": FUNCTION_WORDS, **STOP_WORDS}.items():
        for word in words:
            found[word].append(language)
    return {word: tuple(languages) for word, languages in found.items()}


_HOLDERS = _holders()
_OF_LETTER = {letter: tuple(names.split()) for letters, names in _OF_LETTERS.items() for letter in letters}


def language_of(text: str) -> str | None:
    """The main language of a text, a value of CODES; None if it is not recognised.

    Too short a text has none (a name, a year), nor has one in a Latin language without a list of function words here.
    """
    text = text[:_MOST]
    weights = {name: worth * len(letters.findall(text)) for name, (letters, worth) in _LETTERS.items()}
    if (kana := weights.pop("japanese")) and 8 * kana >= weights["chinese"]:
        weights["japanese"] = kana + weights.pop("chinese")
    weights[""] -= sum(map(len, _CAPITALISED.findall(text)))  # names, which stand in texts of any script
    script = max(weights, key=lambda name: weights[name])
    if script and weights[script]:
        return next((name for name, own in _TELLING.get(script, ()) if _holds(text, own)), script)
    return _latin_language(text)


def _holds(text: str, letters: str) -> bool:
    return 10 * len(re.findall(f"[{letters}]", text)) >= len(text.split())


def _latin_language(text: str) -> str | None:
    words = _WORD.findall(unicodedata.normalize("NFC", text).casefold().replace("i̇", "i"))
    evidence: Counter[str] = Counter()
    for word in words:
        own = _HOLDERS.get(word, ())
        for letter in set(word):
            own += _OF_LETTER.get(letter, ()) if not own else ()
        for language in own or [name for name, ends in _ENDS.items() if ends.fullmatch(word)]:
            evidence[language] += 1 / len(own) if own else _OF_AN_ENDING  # type: ignore[assignment]
    if not evidence:
        return None
    (best, most), (_, second) = [*evidence.most_common(2), ("", 0.0)][:2]
    return best if most >= max(_LEAST, _PER_WORD * len(words)) and most > _AHEAD * second else None


def language_of_all(texts: Iterable[str]) -> str | None:
    """The main language of the first thousand texts; None if none is recognised."""
    found = Counter(filter(None, map(language_of, islice(texts, _TEXTS))))
    return max(found, key=lambda name: found[name]) if found else None


def named_language(key: str, value: str, allowed: Iterable[str]) -> str:
    """The name of a language given by name or code; ConfigError names the key of another value."""
    name = CODES.get(value, value)
    require_choice(key, name, sorted(allowed), "or a code such as de")
    return name
