"""Questions that are in both training and validation, which would flatter a trained model."""

from __future__ import annotations

import pandas as pd

SAME = 0.8  # of the different character 5-grams of both questions, from which two are taken for one
_BLOCK = 1000


def leaked(training: pd.DataFrame, validation: pd.DataFrame) -> pd.DataFrame:
    """Pairs of equivalent questions: [training_qid, validation_qid, similarity].

    Similarity is Jaccard's over the different 5-grams of characters within words (letter case and white space aside), 1
    for questions of the same words. A pair is listed from `SAME` on, once per validation topic with the nearest
    training topic. Training topics of the same words are all listed.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    columns = ["training_qid", "validation_qid", "similarity"]
    if training.empty or validation.empty:
        return pd.DataFrame(columns=columns)
    folded = [[" ".join(text.casefold().split()) for text in frame["query"]] for frame in (training, validation)]
    counts = CountVectorizer(analyzer="char_wb", ngram_range=(5, 5), binary=True, lowercase=False)
    counts.fit(folded[0] + folded[1])
    ours, theirs = (counts.transform(texts).astype("float32") for texts in folded)
    sizes = [matrix.sum(axis=1).A1 for matrix in (ours, theirs)]
    rows = []
    for first in range(0, theirs.shape[0], _BLOCK):
        shared = (theirs[first : first + _BLOCK] @ ours.T).tocoo()
        at = shared.row + first
        similarity = shared.data / (sizes[1][at] + sizes[0][shared.col] - shared.data)
        near = similarity >= SAME
        rows.append(
            pd.DataFrame(
                {
                    "training_qid": training["qid"].to_numpy()[shared.col[near]],
                    "validation_qid": validation["qid"].to_numpy()[at[near]],
                    "similarity": similarity[near].astype(float),
                }
            )
        )
    found = pd.concat(rows, ignore_index=True)
    return found.sort_values(["validation_qid", "similarity", "training_qid"], ascending=[True, False, True])[
        columns
    ].reset_index(drop=True)


def sharing_documents(training: pd.DataFrame, validation: pd.DataFrame) -> frozenset[str]:
    """The qids of validation topics whose evidence shares a document with the training evidence."""
    known = set(training["docno"].dropna())
    return frozenset(validation.loc[validation["docno"].isin(known), "qid"])
