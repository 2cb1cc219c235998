-- Who wrote a document and when, and where in its text its pages begin. A text that was stored before has none of it until its file is ingested again.

alter table app.extracted_text
  add column author text,              -- names in one line; '' if the document names none; null: the document was not asked
  add column published text,           -- YYYY, YYYY-MM or YYYY-MM-DD; '' if the document states no date; null as for author
  add column page_starts integer[],    -- code points of body, ascending, at each of which the text of a page begins
  add column page_numbers integer[];   -- the numbers of these pages, from 1; empty if the document has no pages
