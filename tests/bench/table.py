"""Tables for people, or for docs/measured.md."""


def show(rows, is_markdown, is_named=False):
    """The first row holds the heads; all is aligned to the right, but for the
    first column if that holds names."""
    if is_markdown:
        marks = ["---:"] * len(rows[0])
        if is_named:
            marks[0] = "---"
        for row in rows[:1] + [marks] + rows[1:]:
            print("| " + " | ".join(row) + " |")
    else:
        wide = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            cells = [one.rjust(size) for one, size in zip(row, wide)]
            if is_named:
                cells[0] = row[0].ljust(wide[0])
            print("  ".join(cells))
    print()
