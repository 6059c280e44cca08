"""Tables, as text for a terminal and as HTML for a notebook."""

from html import escape

#: The first row is the head.
Rows = list[list[str]]


def as_text(rows: Rows) -> str:
    """Columns of equal width, two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_html(rows: Rows, text: str = "") -> str:
    """A table in HTML, with sentences above it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:]
    )
    above = "".join(f"<p>{escape(line)}</p>" for line in text.splitlines() if line)
    return f"<div>{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
