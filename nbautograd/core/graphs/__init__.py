"""Graphs: the autograd DAG."""
