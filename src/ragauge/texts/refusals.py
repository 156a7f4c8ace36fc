"""Answers that say that they cannot be given: "The documents do not mention it.", "I cannot find this.", "Unknown."."""

from __future__ import annotations

import re
import unicodedata

_SOURCE = (
    r"(?:documents?|texts?|contexts?|passages?|sources?|evidence|information|excerpts?|articles?|materials?|snippets?|"
    r"paragraphs?|records?|data)"
)
_NOT = r"(?:not|n['’]t)"
_TOLD = (
    r"(?:mention|specif|provid|stat|giv|disclos|includ|found|available|list|describ|discuss|cover|indicat|contain|"
    r"present|detail|address)\w*"
)
# Of the object of a search or of knowledge, what an answer says is missing.
_OBJECT = (
    r"(?:mention|information|indication|evidence|data|answer|reference|details?|context|record|clue|statement|"
    r"specific \w+|explicit \w+|relevant \w+)"
)
_FIND = (
    r"(?:be )?(?:answer|determin|find|found|tell|told|say|said|provid|identif|locat|confirm|verif|infer|conclu|"
    r"establish|ascertain|know|give|deduce|derive)\w*"
)
_SAYS_NOT = rf"(?: {_NOT}|n['’]t|not)"
_FEW = r"(?:such |further |direct |clear )?"
_PLACE = rf"(?:in|by|within|among|from|anywhere)\b[^.!?]{{0,40}}\b{_SOURCE}"
_ENGLISH = (
    rf"(?:\bnot|n['’]t) (?:\w+ )?(?:enough|sufficient) {_OBJECT}",
    rf"\b(?:insufficient|too little|without) {_OBJECT}",
    rf"\b(?:no|any) {_FEW}{_OBJECT}\b[^.!?]{{0,40}}?"
    r"\b(?:in|from|within|about|on|of|for|is|was|to|that|available|provided|given)\b",
    rf"\bno {_FEW}{_OBJECT}\s*(?:[.!]|$)",
    rf"\black(?:s|ing)? (?:of )?(?:the )?(?:\w+ )?{_OBJECT}",
    rf"\b{_SOURCE}\b[^.!?]{{0,60}}?\b(?:do|does|did|is|are|was|were|has|have|can|could){_SAYS_NOT}\b",
    rf"\b{_SOURCE}\b[^.!?]{{0,40}}?"
    r"\b(?:fails? to|remains? silent|(?:is|are) silent|says? nothing|(?:has|have) nothing|leaves? open)",
    rf"\b(?:none|neither) of (?:the|these)(?: \w+)? {_SOURCE}",
    rf"\bno {_SOURCE} (?:\w+ )?(?:{_TOLD}|says?|names?|tells?|answers?)",
    rf"\bthe question does{_SAYS_NOT} {_TOLD}",
    rf"\b(?:not|n['’]t|never|nowhere) (?:\w+ly )?{_TOLD}(?: (?:here|above|below|anywhere|\w+ly))?"
    rf"(?=\s*(?:[.!?,;]|$|{_PLACE}))",
    r"\b(?:can ?not|can['’]t|could not|couldn['’]t|(?:un|not )able to|not possible to|impossible to|no way to)"
    rf" (?:\w+ly )?{_FIND}",
    r"\bi (?:do not|don['’]t|did not|didn['’]t|have no|am not|cannot|can['’]t) (?:\w+ )?"
    r"(?:know|idea|sure|certain|have|see|find|information|answer)",
    r"\bi['’]m (?:not sure|unsure|unable|afraid|not certain|not aware)",
    r"\b(?:is|are|was|were|remains?) (?:unclear|unspecified|unstated|undisclosed)\b",
    r"\b(?:is|are|was|were) not clear(?=\s*(?:[.!?,;]|$|from\b|if\b|wh|how\b))",
    r"^\W*(?:it is |it's |this is |the answer is )?"
    r"(?:unknown|not known|unclear|unspecified|not specified|not available|not provided|not mentioned|not stated|"
    r"not given|not found|n/a|no answer|no information|no idea|unanswerable|none provided)\b\W*$",
    r"\b(?:question|this|it) (?:is|remains) (?:unanswerable|not answerable)\b",
)
_GERMAN = (
    r"\bkeine (?:\w+ )?(?:information|angabe|antwort|hinweis|auskunft|erwähnung)\w*",
    r"\b(?:nicht genug|nicht genügend|nicht ausreichend|unzureichende|zu wenig) \w*information\w*",
    r"\b(?:dokument|text|kontext|passage|quelle|abschnitt|unterlage)\w*\b[^.!?]{0,60}?\b(?:nicht|nichts|kein\w*)\b",
    r"\b(?:nicht|nirgends) (?:\w+ )?"
    r"(?:erwähnt|angegeben|genannt|bekannt|hervor|beantworte\w*|bestimm\w*|feststell\w*|enthalten)",
    r"\bweiß (?:es )?(?:ich )?(?:das )?(?:leider )?nicht\b|^\W*(?:unbekannt|keine angabe)\W*$",
)
_FRENCH = (
    r"\b(?:pas|aucune|plus|manque) (?:assez |suffisamment )?(?:d['’]|de )?"
    r"(?:information|mention|précision|réponse|indication)\w*",
    r"\binformations? insuffisante",
    r"\bn[e'’] ?(?:\w+ )?(?:mention|précis|indiqu|conti|fourni|dis|donn|permet)\w* (?:pas|aucun|rien)",
    r"\b(?:n['’]est|ne sont) pas (?:mention|précis|indiqu|fourni|donn|connu)\w*",
    r"\bje ne (?:sais|peux|trouve) pas\b|\bimpossible de (?:répondre|dire|déterminer|savoir)|^\W*inconnue?\W*$",
)
_SPANISH = (
    r"\bno (?:hay|existe|se encuentra|tengo) (?:suficiente )?(?:información|mención|datos)\w*",
    r"\b(?:información|datos) insuficiente",
    r"\bno (?:se |lo |la )?(?:menciona|especifica|indica|proporciona|dice|contiene|sé|encuentro|conoce)\w*",
    r"\bno (?:puedo|es posible|se puede) (?:responder|determinar|encontrar|saber)|^\W*desconocido\W*$",
)
_ITALIAN = (
    r"\bnon (?:ci sono|c['’]è|ho|vi sono) (?:abbastanza |sufficienti )?(?:informazion|menzion|dati)\w*",
    r"\bnon (?:è |viene |lo )?(?:menzionat|specificat|indicat|fornit|menziona|so\b|dicono|contengono)\w*",
    r"\bnon (?:posso rispondere|è possibile)|^\W*sconosciuto\W*$",
)
_PORTUGUESE = (
    r"\bnão (?:há|existem?|tenho) (?:informaç|menç|dados)\w*",
    r"\bnão (?:é |se )?(?:menciona|especifica|informa|sei\b|posso responder|é possível)\w*|^\W*desconhecido\W*$",
)
_DUTCH = (
    r"\b(?:geen|niet genoeg|onvoldoende) informatie\b|\bik weet het niet\b",
    r"\bniet (?:vermeld|genoemd|bekend|te beantwoorden|gegeven)\b",
)
_CHINESE = (
    r"(?:没有|未|并未|無|无)(?:\w{0,4})?(?:提到|提及|提供|说明|說明|足够的?信息|足夠的?資訊|相关信息|相關資訊|记载|記載)",
    r"(?:无法|無法|不能)(?:\w{0,3})?(?:回答|确定|確定|得知|判断|判斷)|不知道|信息不足|資訊不足|^\W*未知\W*$",
)
_JAPANESE = (
    r"(?:わかりません|分かりません|不明です|答えられません|回答できません|判断できません)",
    r"情報(?:が|は)(?:\w{0,6})?(?:ありません|ない|不足)",
    r"(?:記載|言及|記述|述べ)(?:され|られ)?(?:て|が|は)?(?:い)?(?:ません|ない|ありません)",
)
_ALL = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _CHINESE, _JAPANESE)
_LACK = re.compile("|".join(form for language in _ALL for form in language), re.IGNORECASE)


def says_it_lacks(answer: str) -> bool:
    """Whether an answer says that it lacks the information, in English or one of eight other languages.

    It may answer all the same ("The documents do not say when, but she was born in Graz."): that is for the caller.
    """
    return _LACK.search(unicodedata.normalize("NFKC", answer)) is not None
