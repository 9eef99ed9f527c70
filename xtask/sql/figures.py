"""Tables of figures in documents, rewritten by `--bless`."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def bless(page, header, rows):
    """Puts `rows` below the table's `header`, in place of those that are there; rows of other names stay."""
    path = os.path.join(ROOT, page)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    head = line_of(header)
    if head not in lines:
        sys.exit(f"error: {page} has no table with the header {head!r}")
    begin = lines.index(head) + 2
    end = begin
    while lines[end].startswith("|"):
        end += 1
    kept = {line.split("|")[1].strip(): line for line in lines[begin:end]}
    kept.update({row[0]: line_of(row) for row in rows})
    lines[begin:end] = kept.values()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"written: {page}")


def line_of(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
