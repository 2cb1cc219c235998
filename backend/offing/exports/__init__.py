"""Exports: files and streams of training data.

Each format is one module behind `offing.exports.format`.
"""
