"""Steps that other trainers take: rows with our credit and weights, handed over as files, and what reads them there."""
