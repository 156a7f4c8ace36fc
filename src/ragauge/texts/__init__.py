"""What a token, a sentence and a function word are."""
