"""A small LangChain application whose calls MLflow traces: `python traced_app.py <tracking URI>`.

Run as a process of its own, since autologging patches LangChain for the whole process. Retriever and chain
are LangChain's own; the chat model is its fake one, which answers from a list.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import suppress
from typing import Any

EXPERIMENT = "helpdesk"
DOCUMENTS = {
    "ports.md": "The debug server listens on port 4711.",
    "backup guide.md": "Backups run at two in the night. They are kept for ninety days.",
    "mail.md": "Mail is relayed by the host postbox. It refuses attachments over 20 MB.",
    "users.md": "A user is locked after five wrong passwords.",
}
# Question, answer of the model, expected response, expected passage (uri and text).
QUESTIONS = [
    ("On which port does the debug server listen?", "On port 4711.", "4711", "ports.md"),
    ("When do backups run?", "Backups run at two in the night.", "at two in the night", "backup guide.md"),
    ("Which host relays mail?", "I do not know.", "postbox", "mail.md"),
    ("When is a user locked?", "After three wrong passwords.", "after five wrong passwords", "users.md"),
]


def main(uri: str) -> None:
    """Asks the questions: as a text, as {question}, in two rounds, without retrieval, and with a failure."""
    os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore

    class HashedWords(Embeddings):
        """Counts of hashed words."""

        def embed_query(self, text: str) -> list[float]:
            vector = [0.0] * 256
            for word in re.findall(r"\w+", text.casefold()):
                vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
            return vector

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment(EXPERIMENT)
    mlflow.langchain.autolog()
    store = InMemoryVectorStore(HashedWords())
    store.add_documents([Document(page_content=text, metadata={"source": f}) for f, text in DOCUMENTS.items()])
    retriever = store.as_retriever(search_kwargs={"k": 2})

    def model(answer: str) -> Any:
        usage = {"input_tokens": 40, "output_tokens": 5, "total_tokens": 45}
        return GenericFakeChatModel(messages=iter([AIMessage(content=answer, usage_metadata=usage)]))

    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    for number, (question, answer, expected, source) in enumerate(QUESTIONS):
        parser = StrOutputParser()
        if number % 2:
            chain = {"context": (lambda d: d["question"]) | retriever, "question": lambda d: d["question"]}
            (chain | prompt | model(answer)).invoke({"question": question})
        else:
            chain = {"context": retriever, "question": RunnablePassthrough()}
            (chain | prompt | model(answer) | parser).invoke(question)
        trace_id = mlflow.get_last_active_trace_id()
        mlflow.log_expectation(trace_id=trace_id, name="expected_response", value=expected)
        context = [{"doc_uri": source, "content": DOCUMENTS[source].split(". ")[0].rstrip(".") + "."}]
        mlflow.log_expectation(trace_id=trace_id, name="expected_retrieved_context", value=context)
        mlflow.set_trace_tag(trace_id, "version", "3" if number < 2 else "4")

    def two_rounds(question: str) -> str:
        first = retriever.invoke(question)
        second = retriever.invoke(f"{question} {first[0].page_content}")
        context = [d.page_content for d in first + second]
        return str(
            (prompt | model("Ninety days.") | StrOutputParser()).invoke({"context": context, "question": question})
        )

    RunnableLambda(two_rounds).with_config(run_name="agent").invoke("How long are backups kept?")
    (prompt | model("Hello.") | StrOutputParser()).invoke({"context": "", "question": "Are you there?"})

    def broken(question: str) -> str:
        retriever.invoke(question)
        raise TimeoutError("the model did not answer; key sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD")

    with suppress(TimeoutError):
        RunnableLambda(broken).invoke("Why is it slow?")

    @mlflow.trace
    def heartbeat() -> str:
        return "ok"

    heartbeat()


if __name__ == "__main__":
    main(sys.argv[1])
