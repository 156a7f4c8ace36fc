"""The words of a text in any script, as searching sees them, and those that carry grammar instead of a subject.

Three other lists have other purposes and stay apart. ragauge.texts.sentences has the words that open a sentence and the
abbreviations, ragauge.retrieval.queries the small words inside names (van, of), and the BM25 engines their own English
stop words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Scripts written without spaces between words, as the inside of a character class: Thai, Lao, Myanmar, Khmer,
# kana, Han.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = f"{WITHOUT_SPACES}\u1100-\u11ff\uac00-\ud7a3"  # and Korean, whose particles cling to the words
_POSSESSIVE = re.compile(r"['’]s\b")
_RUNS = re.compile(f"([{UNSPACED}]+)|((?:(?![{UNSPACED}])[^\\W_])+)")


def has_words(query: object) -> bool:
    """Whether a query holds a letter or digit of any script; one that does not has no hits."""
    return isinstance(query, str) and any(map(str.isalnum, query))


def words(text: str) -> list[str]:
    """The words of a text in order, case folded, without the possessive 's.

    In scripts written without spaces each pair of neighbouring characters is one; a single one is itself.
    """
    found: list[str] = []
    for unspaced, spaced in _RUNS.findall(_POSSESSIVE.sub("", text.casefold())):
        if spaced or len(unspaced) == 1:
            found.append(spaced or unspaced)
        else:
            found += (unspaced[i : i + 2] for i in range(len(unspaced) - 1))
    return found


# Of English: articles, pronouns, auxiliaries, prepositions. The lexical judge leaves out GRAMMAR_WORDS only, since
# before, more or one can be what an answer is about; the rules that write search queries leave out FUNCTION_WORDS.
ARTICLES = frozenset({"a", "an", "the"})

_GRAMMAR_TEXT = """
    also and are as at be been being both but by did do does for from had has have he her him his in
    into is it its no nor not of on or she than that their them there these they this those to was were
    what which who whom whose with yes
"""
GRAMMAR_WORDS = ARTICLES | frozenset(_GRAMMAR_TEXT.split())

# Function words that an answer may still turn on: time, place, amount, condition.
_FURTHER_TEXT = """
    about after all am any because before between can could during each either else having here how i if
    itself many may me more most much must my neither one only other our out over own same shall should
    since so some such then through under until up upon us we when where whether while why will within
    without would you your
"""
FUNCTION_WORDS = GRAMMAR_WORDS | frozenset(_FURTHER_TEXT.split())

# BM25 leaves these out of the queries of these languages.
_TEXTS = {
    "danish": """
        ad af alle at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter
        eller en end er et for fra få får før ham han hans har havde have hende hendes her hos hun hvad hvem
        hver hvilken hvilket hvis hvor hvordan hvorfor hvornår i ikke ind jeg jer jo kan kunne man mange med
        meget men mig min mod ned noget nogle nu når og også om op os over på samme selv sig sin skal skulle
        som sådan thi til ud under var ved vi vil ville vor være været
    """,
    "dutch": """
        aan al alle als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er
        ge geen geweest haar had hadden hebben heeft hem hen het hier hij hoe hun ik in is ja je kan kon
        kunnen maar me meer men met mij mijn moet na naar niet nog nu of om omdat onder ons ook op over s t
        te tegen toch toen tot u uit uw van veel voor waar waarom wanneer was waren wat we welk welke wel
        werd wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou
    """,
    "french": """
        a ai alors as au aucun aussi autre aux avait avaient avec avez avoir avons c ce ceci cela celle
        celles celui ces cet cette ceux chez comme comment d dans de des donc dont du elle elles en entre es
        est et étaient était été être eu eut eux fut il ils j je l la laquelle le lequel les lesquelles
        lesquels leur leurs lui m ma mais me même mes moi mon n ne ni nos notre nous on ont or ou où par pas
        pendant peu plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si
        son sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vos votre vous y
    """,
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus
        bei beim bin bis bist da damit dann das dass dein deine dem den denn der des dessen deren dich die
        dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es
        etwas euch euer eure für gegen habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr
        ihre ihrem ihren ihrer ihres im in ins ist ja jede jedem jeden jeder jedes jene jenem jenen jener
        jenes kann kein keine keinem keinen keiner können könnte mein meine mich mir mit muss nach nicht
        nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seines seit sich sie sind so
        solche soll sollte sondern über um und uns unser unsere unter vom von vor während war waren warst
        warum was weil welche welchem welchen welcher welches wenn wer wem wen werde werden weshalb wessen
        wie wieder will wir wird wo wurde wurden zu zum zur zwar zwischen
    """,
    "italian": """
        a abbia abbiamo ad agli ai al alla alle allo anche avere aveva avevano c che chi ci ciò come con
        contro cosa cui d da dagli dai dal dalla dalle dallo degli dei del dell della delle dello di dove e
        è ed era erano essere fra fu furono gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi
        mia mie mio ne negli nei nel nella nelle nello noi non nostra nostro o ogni per perché più quale
        quali quando quanto quella quelle quelli quello questa queste questi questo s se sei si sia siamo
        siano sono sta stata stato su sua sue sugli sui sul sulla sulle sullo suo suoi ti tra tu tua tuo
        tutti tutto un una uno v vi voi
    """,
    "norwegian": """
        alle at av begge ble bli blir da de deg dem den denne der deres det dette din disse du eller en enn
        er et etter for fra før ha hadde han hans har henne hennes her hos hun hva hvem hver hvilke hvilken
        hvilket hvis hvor hvordan hvorfor i ikke inn ja jeg kan kom kunne man mange med meg meget mellom men
        min mot mye ned noe noen nå når og også om opp oss over på samme seg selv sin skal skulle slik som
        så til um under ut var ved vi vil ville vår være vært
    """,
    "portuguese": """
        a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele deles
        depois do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estar estas
        estava estão este estes eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha muito
        na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque
        qual quais quando que quem são se sem ser será seu seus só sua suas também te tem têm tinha tu tua
        um uma umas uns você vocês
    """,
    "russian": """
        а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до
        его ее если есть еще же за здесь и из или им их к как какая какие каким какого какой какую ко когда
        кого кому кто куда ли либо меня мне может мой мы на над нам нас наш не него нее нет ни них но ну о
        об он она они оно от откуда по под почему при про с сам свой себя со так также такой там те тем то
        того тоже той только том тот ты у уже чего чей чем что чтобы чья эта эти этим этих это этого этой
        этом этот эту я
    """,
    "spanish": """
        a al algo ante antes aquel aquella aquellas aquellos así aunque cada como cómo con cual cuál cuales
        cuáles cuando cuándo cuanto cuánto de del desde donde dónde dos durante e el él ella ellas ellos en
        entre era eran es esa esas ese eso esos esta está estaba estado están estar estas este esto estos
        fue fueron ha había habían han hasta hay he la las le les lo los más me mi mí mis mucho muy nada ni
        no nos nosotros nuestra nuestro o os otra otro para pero poco por porque qué que quien quién quienes
        se sea según ser será si sí sido sin sino sobre son su sus también tan te tiene tienen toda todo
        todos tu tú tus u un una unas uno unos usted y ya yo
    """,
    "swedish": """
        alla allt att av blev bli blir då de dem den denna deras dess dessa det detta dig din dit du där
        efter ej eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke ingen
        inom inte jag ju kan kunde man med mellan men mig min mot mycket ni nu när någon något några och om
        oss på samma sedan sig sin sitta själv ska skall skulle som så sådan till under upp ut utan vad var
        varför vart varje vem vi vid vilka vilken vilket vill vår vara varit åt än är över
    """,
}
STOP_WORDS: Mapping[str, frozenset[str]] = {language: frozenset(text.split()) for language, text in _TEXTS.items()}
