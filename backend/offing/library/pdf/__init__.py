"""Read the pages of PDF documents as a person does: in columns, with tables as tables."""
