"""Write a report as a DOCX or PDF file, in a child process with limits.

`writers` is the pool of processes, `writer_process` their program. Nothing here reads the database or the network.
"""
