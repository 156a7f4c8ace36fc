"""Answers that say that they cannot be given: "The documents do not mention it.", "I cannot find this.", "Unknown."."""

from __future__ import annotations

import re
import unicodedata

_SOURCE = (
    r"(?:documents?|texts?|contexts?|passages?|sources?|evidence|information|excerpts?|articles?|materials?|snippets?|"
    r"paragraphs?|records?|data)"
)
_TOLD = (
    r"(?:mention|specif|provid|stat|giv|disclos|includ|found|available|list|describ|discuss|cover|indicat|contain|"
    r"present|detail|address|reveal|named|identified)\w*"
)
_SAID = (
    r"(?:say|said|hold|have|name|tell|answer|help|allow|clarif|refer|show|explain|support|speak|offer|suffic|enough|"
    r"relevant|about|help|confirm|identif|establish|make)\w*"
)
# Of the object of a search or of knowledge, what an answer says is missing.
_OBJECT = (
    r"(?:mention|information|indication|evidence|data|answer|reference|details?|context|record|clue|statement|"
    r"specific \w+|explicit \w+|relevant \w+)"
)
_FIND = (
    r"(?:answer|determin|find|found|tell|told|say|said|provid|identif|locat|confirm|verif|infer|conclu|"
    r"establish|ascertain|know|give|deduce|derive)\w*"
)
_FEW = r"(?:such |further |direct |clear )?"
_PLACE = rf"(?:in|by|within|among|from|anywhere)\b[^.!?]{{0,40}}\b{_SOURCE}"
# From a source to the verb that has it as its subject.
_ON = (
    r"(?:(?!, (?!however|unfortunately)|\b(?:say|state|mention|show|tell|indicate|suggest)s? (?:us )?that\b|"
    r"\bthat (?:do|does|did|is|are|was|were) not\b)[^.!?]){0,60}?"
)
# "n't" is "not" here.
_ENGLISH = (
    rf"\bnot (?:\w+ )?(?:enough|sufficient) {_OBJECT}",
    rf"\b(?:insufficient|too little|without) {_OBJECT}",
    rf"\b(?:no|any) {_FEW}{_OBJECT}[\s,]+(?:\w+[\s,]+)?"
    r"(?:in|from|within|about|on|of|for|as|is|was|are|were|to|that|available|provided|given|possible|regarding|concerning)\b",
    rf"\bno {_FEW}{_OBJECT}\s*(?:[.!]|$)",
    rf"\black(?:s|ing)? (?:of )?(?:the )?(?:\w+ )?{_OBJECT}",
    rf"\bno {_FEW}{_OBJECT} (?:can|could) be\b|\banswer is not possible\b|\bnot answer(?:able|ed (?=by|in|from))",
    rf"\b{_OBJECT} (?:is|are|was|were) (?:missing|absent|lacking|unavailable)\b",
    rf"\bnothing (?:is|was) (?:{_TOLD}|said|known|told)",
    r"\b(?:it|this|that) (?:is|was) not (?:said|known|told|written|recorded)\b|\bwe are not told\b",
    rf"\bit is not (?:\w+ly )?{_TOLD} (?:wh\w+|how|if)\b",
    rf"\b{_SOURCE}\b{_ON}\b(?:do|does) not\b",
    rf"\b{_SOURCE}\b{_ON}\b(?:did|is|are|was|were|has|have|can|could) ?not (?:\w+ ){{0,2}}?"
    rf"(?:{_TOLD}|{_SAID})",
    rf"\b{_SOURCE}\b[^.!?]{{0,40}}?\b(?:fails? to|remains? silent|(?:is|are) (?:silent|insufficient)|says? nothing|"
    rf"(?:has|have|contains?|offers?) nothing|leaves? (?:\w+ )?open|never {_TOLD})",
    rf"\b(?:none|neither) of (?:the|these)(?: \w+)? {_SOURCE}",
    rf"\b(?:no|neither) {_SOURCE} (?:\w+ )?(?:{_TOLD}|says?|names?|tells?|answers?)",
    rf"\bno (?:relevant |such |matching )?{_SOURCE} (?:was|were|is|are|has been|have been|could be) (?:found|given)",
    rf"\b(?:nothing|nowhere)\b[^.!?]{{0,20}}\b(?:in|within|from) (?:the|these|this|any)(?: \w+)? {_SOURCE}",
    rf"\bthe question does not {_TOLD}",
    rf"\b(?:not|never|nowhere) (?:\w+ly )?{_TOLD}(?: (?:here|above|below|anywhere|\w+ly))?"
    rf"(?=\s*(?:[.!?,;]|$|{_PLACE}))",
    rf"\bnot (?:appear |be |to be found )?(?:in|within|among) (?:the|these|this|any)(?: \w+)? {_SOURCE}",
    rf"(?:^|[.!?,;:]\s*|\b(?:i|we) (?:was |am |were |are |\w+ly )?|\bit is |\bthere is )"
    rf"(?:cannot|could not|(?:un|not )able to|not possible to|impossible to|no way to) (?:\w+ly )?{_FIND}",
    rf"\bcannot (?:\w+ly )?be (?:\w+ly )?{_FIND}",
    r"\bcould not (?:\w+ly )?be (?:\w+ly )?(?:answer|determin|verif|ascertain)\w*",
    rf"\bcould not (?:\w+ly )?be (?:\w+ly )?{_FIND} {_PLACE}",
    r"\bi (?:do not|did not|have no|am not|cannot) (?:\w+ )?"
    r"(?:know|idea|sure|certain|have|see|find|information|answer)",
    r"\bi['’]m (?:not sure|unsure|unable|afraid|not certain|not aware)",
    r"\b(?:is|are|was|were|remains?) (?:unclear|unspecified|unstated|undisclosed|undetermined)\b|"
    r"\bremains? unknown\b",
    r"\b(?:is|are|was|were|it['’]s) not clear(?=\s*(?:[.!?,;]|$|from\b|if\b|wh|how\b))",
    r"^\W*(?:it is |it's |this is |the answer is |answer: )?"
    r"(?:unknown|not known|unclear|undetermined|unspecified|not specified|not available|not applicable|not provided|"
    r"not mentioned|not stated|not given|not found|n/a|no answer|no information|no idea|no data|unanswerable|"
    r"none provided)\b"
    rf"(?:\W*$| {_PLACE})",
    r"\b(?:question|this|it) (?:is|remains) (?:unanswerable|not answerable)\b",
)
_GERMAN_SOURCE = r"(?:dokument|text|kontext|passage|quellen|abschnitt|unterlage)\w*"
_GERMAN = (
    r"\bkeine (?:\w+ )?(?:information|angabe|antwort|hinweis|auskunft|erwähnung)\w*",
    r"\b(?:nicht genug|nicht genügend|nicht ausreichend|unzureichende|zu wenig) \w*information\w*",
    rf"\b{_GERMAN_SOURCE}\b(?:(?!\b(?:wurden?|waren?|stammt|liegt)\b)[^.!?]){{0,60}}?\b(?:nicht|nichts|kein\w*)\b",
    r"\b(?:nicht|nichts|nirgends)\b[^.!?]{0,20}\b(?:in|aus|anhand) (?:den|dem|der|diese\w)(?: \w+)? "
    rf"{_GERMAN_SOURCE}",
    r"\b(?:nicht|nirgends) (?:\w+ )?"
    r"(?:erwähnt|angegeben|genannt|bekannt(?! für)|hervor|beantworte\w*|bestimm\w*|feststell\w*|enthalten)",
    r"\bl(?:ässt|assen) sich (?:\w+ ){0,4}nicht (?:sagen|beantwort|bestimm|feststell|ermitt|ableit|entnehm)",
    r"\bfehl(?:t|en)\b[^.!?]{0,30}(?:angabe|information)|\bdazu kann ich nichts\b",
    r"\bweiß (?:es )?(?:ich )?(?:das )?(?:leider )?nicht\b|^\W*(?:unbekannt|keine angabe)\W*$",
)
_FRENCH = (
    r"\b(?:pas|aucune|plus|manque) (?:assez |suffisamment )?(?:d['’]|de )?"
    r"(?:information|mention|précision|réponse|indication)\w*",
    r"\binformations? insuffisante",
    r"\bn[e'’] ?(?:\w+ )?(?:mention|précis|indiqu|conti|fourni|dis|donn|permet)\w* (?:pas|aucun|rien)",
    r"\bn(?:e |['’])(?:se trouve|figure|apparaît) pas\b",
    r"\b(?:n['’]est|ne sont) pas (?:mention|précis|indiqu|fourni|donn|connu|disponib)\w*",
    r"\bje ne (?:sais|peux|trouve) pas\b|\bimpossible de (?:répondre|dire|déterminer|savoir)|^\W*inconnue?\W*$",
)
_SPANISH = (
    r"\bno (?:hay|existe|se encuentra|tengo) (?:suficiente )?(?:información|mención|datos)\w*",
    r"\b(?:información|datos) insuficiente|\binformación\b[^.!?]{0,20}\bno está\b",
    r"\bno (?:se |lo |la )?(?:menciona|especifica|indica|proporciona|contiene|sé|encuentro|conoce)\w*",
    r"\bno (?:se |lo )dice\w*|\b(?:documento|texto|contexto|pasaje)s? no (?:\w+ )?(?:dice|da|aclara|aporta|ofrece)\w*",
    r"\bno (?:está|aparece|figura) en (?:el|los|este|estos) (?:documento|texto|contexto|pasaje)s?",
    r"\bno (?:puedo|es posible|se puede) (?:responder|determinar|encontrar|saber|decir)",
    r"\bse desconoce|^\W*desconocido\W*$",
)
_ITALIAN = (
    r"\bnon (?:ci sono|c['’]è|ho|vi sono) (?:abbastanza |sufficienti )?(?:informazion|menzion|dati)\w*",
    r"\bnon (?:è |viene |lo )?(?:menzionat|specificat|indicat|fornit|menziona|so\b|dicono|contengono)\w*",
    r"\b(?:document|test[oi]\b|contest|passagg)\w*\b[^.!?]{0,20}\bnon (?!(?:è|fu|furono|era|erano)\b)",
    r"\bnon (?:si sa\b|(?:si trova|compare|appare|è) ne(?:l|i|gli) (?:document|test|contest|passagg))",
    r"\bnon (?:posso rispondere|è possibile)|^\W*sconosciuto\W*$",
)
_PORTUGUESE = (
    r"\bnão (?:há|existem?|tenho) (?:informaç|menç|dados)\w*",
    r"\b(?:document|text|context|passag)\w*\b[^.!?]{0,20}\bnão (?!(?:é|foi|foram|era|eram)\b)",
    r"\bnão (?:está|consta|aparece) n(?:o|os|este|estes) (?:document|text|context)",
    r"\bnão (?:é |se )?(?:menciona|especifica|informa|sei\b|posso responder|é possível)\w*|^\W*desconhecido\W*$",
)
_DUTCH = (
    r"\b(?:geen|niet genoeg|onvoldoende) informatie\b|\bik weet het niet\b",
    r"\bniet (?:vermeld|genoemd|bekend|te beantwoorden|gegeven)\b",
    r"\b(?:document|tekst|context|passage)\w* (?:vermeld|noem|zeg|bevat|geef|geven|zegg)\w*\b[^.!?]{0,30}"
    r"\b(?:niet|niets|geen)\b",
    r"\b(?:niet|niets|nergens) in (?:de|deze|het) (?:document|tekst|context|passage)\w*",
)
_CHINESE = (
    r"(?:没有|未|并未|無|无)(?:\w{0,4})?(?:提到|提及|提供|说明|說明|足够的?信息|足夠的?資訊|相关信息|相關資訊|记载|記載)",
    r"(?:无法|無法|不能)(?:\w{0,3})?(?:回答|确定|確定|得知|判断|判斷)|不知道|不清楚|信息不足|資訊不足|^\W*(?:未知|不明)\W*$",
    r"(?:没有|未|沒有)(?:\w{0,2})?(?:给出|提供|答案|給出)",
)
_JAPANESE = (
    r"(?:わかりません|分かりません|不明です|答えられません|回答できません|判断できません)",
    r"文書に(?:は)?(?:ありません|ない)",
    r"情報(?:が|は)(?:\w{0,6})?(?:ありません|ない|不足|見つかりません|見つからな)",
    r"(?:記載|言及|記述|述べ|書か|含ま)(?:され|られ|れ)?(?:て|が|は)?(?:い)?(?:ません|ない|ありません)",
)
_ALL = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _CHINESE, _JAPANESE)
_CANNOT, _NOT = re.compile(r"\bcan(?:['’]t| not)\b", re.IGNORECASE), re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
_LACK = re.compile("|".join(form for language in _ALL for form in language), re.IGNORECASE)


def says_it_lacks(answer: str) -> bool:
    """Whether an answer says that it lacks the information, in English or one of eight other languages.

    It may answer all the same ("The documents do not say when, but she was born in Graz."): that is for the caller.
    """
    text = _CANNOT.sub("cannot", unicodedata.normalize("NFKC", answer))
    return _LACK.search(_NOT.sub(" not", text)) is not None
