"""Traces of MLflow as what was asked, retrieved and answered: a window of them is a dataset and a system."""
