"""BLEU and chrF, the measures of machine translation (config group `answers`)."""
