"""Graphs of five shapes, each written as an introduction to LangGraph would be, with our chat model in them.

Nothing in them knows of the platform but the model's import and the last statement, which registers the graph.
"""
