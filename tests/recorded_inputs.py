"""Two topics and four chunks of three documents, for what is recorded of them."""

import pandas as pd

CHUNKS = pd.DataFrame(
    {
        "docno": ["a%p0", "a%p1", "b%p0", "c%p0"],
        "text": ["one", "two", "three", "four"],
        "parent": ["a", "a", "b", "c"],
        "start": 0,
        "end": 3,
    }
)
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["first?", "second?"]})
