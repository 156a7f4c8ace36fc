"""A corpus that no model has read: a generated world of articles, and questions about it (docs/fictional.md).

`names`, `words` and `grammar` make words and sentences; `relations`, `entities` and `region` the facts; `prose*` and
`articles` the texts. `asking`, `chains`, `sets`, `lacking` and `questions` make the questions. `twins` changes one
fact; `world` puts it together and `source` gives it out.
"""
