"""Refusals in words that models use, and answers that hold the same words."""

from __future__ import annotations

import time

import pytest

from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.texts.refusals import says_it_lacks

REFUSALS = """
The documents do not say.
The documents don't say.
The documents do not hold enough information to answer.
The provided documents do not contain information about her birthplace.
The context does not mention who built the tower.
The context doesn't provide this information.
The passages do not specify the year.
The text does not state where he was born.
None of the passages mention the bridge.
No document names the builder.
There is no mention of the bridge in the documents.
There is no mention of her brother.
There is no information about the tower.
There is no information available.
There is not enough information to answer the question.
There isn't enough context to answer.
There is insufficient information.
Insufficient evidence.
Not enough information.
No information.
No information provided.
The information is not provided.
The year is not mentioned in the passages.
The year is not given.
This is not stated in the text.
It is not specified.
Her birthplace is not explicitly mentioned in the provided context.
That is not covered by the documents.
The answer is not found in the documents.
The answer is not available in the given sources.
The date of construction is not disclosed.
I cannot find this in the documents.
I cannot find the answer.
I can't answer that from the documents.
I cannot determine who built it.
I could not find any information on this.
I am unable to answer the question.
I'm unable to answer based on the documents.
I'm sorry, but the documents do not mention this.
Sorry, I don't have enough information.
I do not know.
I don't know.
I don't know who built it.
I am not sure.
I'm not sure.
I have no information about this.
I have no idea.
I do not have access to this information.
It cannot be determined from the passages.
It can't be determined.
The question cannot be answered.
The question cannot be answered with the given documents.
It is not possible to answer the question from the context.
It is impossible to tell from the documents.
It is unclear from the passages.
It is unclear.
The builder remains unclear.
Unknown.
Unknown
The answer is unknown.
Not specified.
Not mentioned.
Not provided.
Not available
N/A
No answer.
Unanswerable.
This question is unanswerable.
The documents lack information on this.
The passages lack any mention of the bridge.
The sources are silent on this point.
The documents say nothing about the bridge.
The question does not provide enough context.
Unfortunately, the evidence does not tell who built it.
Based on the documents, I cannot say who built the tower.
There's no indication of who painted it.
Die Dokumente sagen das nicht.
Die Dokumente enthalten keine Informationen dazu.
Der Text erwähnt das nicht.
Das geht aus dem Text nicht hervor.
Dazu gibt es keine Angaben.
Das wird nicht erwähnt.
Die Frage kann nicht beantwortet werden.
Es gibt nicht genug Informationen.
Ich weiß es nicht.
Unbekannt.
Les documents ne le mentionnent pas.
Il n'y a pas assez d'informations.
Ce n'est pas précisé.
Je ne sais pas.
Il est impossible de répondre à la question.
Los documentos no lo mencionan.
No hay información suficiente.
No se menciona en el texto.
No lo sé.
No puedo responder a la pregunta.
Non ci sono informazioni sufficienti.
Il testo non menziona il ponte.
Non lo so.
Não há informações suficientes.
O texto não menciona a ponte.
Er is niet genoeg informatie.
Dat is niet vermeld in de tekst.
Ik weet het niet.
文档中没有提到这一点。
没有足够的信息。
无法回答这个问题。
我不知道。
文書には記載されていません。
情報がありません。
わかりません。
There is nothing in the documents about the harbour's opening.
Nothing in the passages answers this.
Neither document states where she was born.
Neither passage mentions the firm.
The documents are insufficient to answer this.
It isn't mentioned.
That isn't stated anywhere in the text.
His birthplace isn't given.
The answer isn't in the documents.
The answer is not in the text.
The answer does not appear in the documents.
No relevant documents were found.
The text never mentions the founder.
Sorry, this is not answered by the given passages.
The required information is missing from the documents.
The information is missing.
It's not clear from the documents who built it.
Undetermined.
Not in the documents.
Darüber steht nichts in den Texten.
Das steht nicht in den Dokumenten.
La información no está disponible.
Se desconoce.
Il testo non fornisce questa informazione.
Os documentos não dizem.
De documenten vermelden dit niet.
De tekst zegt hier niets over.
Dit staat niet in de documenten.
文書には書かれていません。
その情報は見つかりませんでした。
Nothing is said about the painter's death.
An answer is not possible with these documents.
The documents leave this open.
It is not said in the documents.
It is not known from the given text.
The question is not answered in the documents.
Information is lacking.
Not answerable from the documents.
Not applicable.
Unclear from the text.
Es lässt sich nicht sagen.
Hierzu fehlen Angaben.
Dazu kann ich nichts sagen.
La réponse ne se trouve pas dans les documents.
No está en los documentos.
La respuesta no aparece en el texto.
Non si sa.
La risposta non si trova nei documenti.
A resposta não está nos documentos.
Het antwoord staat niet in de tekst.
De documenten geven geen antwoord.
文档没有给出答案。
不清楚。
答えは文書にありません。
不明。
It isn't possible to say from these documents.
The information given is insufficient to determine the year.
Nowhere in the documents is the date given.
Her teacher is not named.
His teacher is not named in the documents.
The firm's founder isn't identified.
The year of the charter remains unknown.
It is not specified who built the bridge.
It is not stated which town the firm is based in.
We are not told.
That detail is absent from the text.
文書にその情報は含まれていません。
""".strip().splitlines()

ANSWERS = """
She was born in Graz.
Anna Berg built the tower in 1807.
No.
Yes.
No, the bridge is older.
None.
None of them.
No one.
He did not attend law school.
The river does not reach the sea.
Aristotle did not write about elephants.
Kangaroos do not walk backwards.
Wilson won the election in 1916, not in 1917.
There is no land animal larger than an elephant.
Watt did not drop John from his name.
E. B. White and Dan Masterson have no common characteristics.
She could not swim.
He cannot be elected a third time.
He was unable to attend the ceremony.
The treaty was not signed until 1815.
The prize was not given to a woman before 1903.
The book was not available until 1920.
The tower was not found by the first expedition.
The Unknown Soldier is buried there.
It is known as the Unknown Land.
He played an unknown composer.
The Documents of Vatican II.
He wrote texts on mathematics.
The evidence convicted him.
The Freedom of Information Act.
An information theorist named Shannon.
It was not James Watt.
Its members are not paid.
Nothing.
Nobody knows the Trouble I've Seen.
You Don't Know Me
I Can't Get No Satisfaction
Dawn Penn produced the single "You Don't Love Me (No, No, No)".
The question of Schleswig-Holstein.
Not until 1945.
Neither of the brothers married.
It lacks a roof.
Ducks have none.
The mountain is not clear of snow before June.
Das ist nicht wahr.
Nein, er wurde in Graz geboren.
Er konnte nicht schwimmen.
Il n'est pas marié.
Non, elle est née à Graz.
No, nació en Graz.
No quiso volver.
Non è mai tornato.
Não, ele nasceu em Lisboa.
Hij is niet getrouwd.
不是，他出生在格拉茨。
她没有结婚。
いいえ、グラーツです。
彼は結婚していません。
The evidence was not admitted in court.
He could not find work and emigrated to Lisbon.
No information technology company was founded there before 1990.
Die Quelle des Flusses liegt nicht in Graz, sondern in Linz.
Er war nicht bekannt für seine Geduld.
Der Text stammt nicht von Goethe, sondern von Schiller.
No dice la verdad.
According to the documents, he did not attend school.
The documents say that it was not Anna Berg but her brother.
Fossil evidence suggests that penguins were not entirely flightless by the end of the Cretaceous.
The documents of the abbey were burned in 1803.
The records were destroyed in the fire of 1902.
According to the documents, he did not name his teacher.
The documents say that it does not have a mayor.
It is the only one of the 741 documents that does not name the town.
He never answered.
Nothing remains of the abbey.
The painting is missing since 1945.
""".strip().splitlines()


def test_refusals_are_known_in_nine_languages_and_no_answer_is_taken_for_one() -> None:
    missed = [text for text in [*REFUSALS, LACK_OF_INFORMATION] if not says_it_lacks(text)]
    assert missed == []
    assert [text for text in ANSWERS if says_it_lacks(text)] == []
    assert len(REFUSALS) > 170


@pytest.mark.parametrize("text", ["not ", "no information ", "the documents ", "n't ", "a" * 9 + " ", "没有"])
def test_a_long_answer_is_read_in_no_time(text: str) -> None:
    start = time.process_time()
    says_it_lacks(text * 3000 + "x")
    assert time.process_time() - start < 2
