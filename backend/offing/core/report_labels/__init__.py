"""The words that the files of a report have besides its own text: headings, verdicts and notes, by language.

A table for each language is one value (`ReportLabels`), which callers pass to what writes a report.
"""
