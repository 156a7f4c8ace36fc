"""A corpus that nobody has read: a generated world of articles, and questions on it (docs/fictional.md).

`names`, `words` and `grammar` make words and sentences; `relations`, `entities` and `region` what is true;
`prose*` and `articles` tell it; `asking`, `chains`, `sets`, `lacking` and `questions` ask for it; `twins`
changes one fact; `world` puts it together and `source` gives it out.
"""
