"""Rows of CSV text: where they end, and which of them have as many cells as the header.

The grammar is Arrow's. A cell is quoted if it begins with a quote; a quote inside is written twice.
A line feed or carriage return outside of quotes ends a row. A row without a character is none.
"""

from __future__ import annotations

from .jit import kernel

QUOTE, LINE_FEED, CARRIAGE_RETURN = 34, 10, 13
# Before the first character of a cell, in a cell, in its quotes, and after a quote that ends them
# unless another one follows.
BEFORE, INSIDE, QUOTED, AFTER_QUOTE = range(4)


@kernel
def take_rows(text, delimiter, cells, longest, skipping, state, kept, found):  # type: ignore[no-untyped-def]
    """Copy the complete rows that have the right number of cells, up to a row that is too long.

    Args:
        text: bytes in an encoding that contains ASCII [shape=(n,), uint8].
        delimiter: the byte that separates cells.
        cells: the right number of cells; if it is negative, the first cells of all rows are copied
            that have not so many.
        longest: largest number of bytes of a row.
        skipping: 1 if the text begins inside a row to be skipped; 0 at the start of a row.
        state: state at which the text before ended, if it is skipped; else BEFORE.
        kept: the rows, each with a line feed at its end, written [shape=(n,), uint8].
        found: written [shape=(7,), int64]: bytes in ``kept``; bytes up to the end of the last
            complete row; number of rows left out for their cells; where the first of them begins,
            and where it ends; bytes read, fewer than n before a row that is too long; and the state
            there.
    """
    written = end = start = separators = 0
    left_out = first = last = 0
    stop = text.size
    firsts, cells = cells < 0, abs(cells)
    for i in range(text.size):
        if i - start > longest and not skipping:
            stop = i
            break
        byte = text[i]
        if separators == 0 or not firsts:
            kept[written] = byte
            written += 1
        if state == QUOTED:
            if byte == QUOTE:
                state = AFTER_QUOTE
        elif state == AFTER_QUOTE and byte == QUOTE:
            state = QUOTED
        elif byte in (LINE_FEED, CARRIAGE_RETURN):
            if not skipping and i > start and (separators + 1 == cells) != firsts:
                # The delimiter after a first cell is where this line feed is.
                kept[written - 1] = LINE_FEED
                end = written
            elif not skipping and i > start:
                if not left_out:
                    first, last = start, i
                left_out += 1
            written = end
            start, separators, state, skipping = i + 1, 0, BEFORE, 0
        elif byte == delimiter:
            separators += 1
            state = BEFORE
        elif byte == QUOTE and state == BEFORE:
            state = QUOTED
        else:
            state = INSIDE
    found[0], found[1], found[2] = end, start, left_out
    found[3], found[4], found[5], found[6] = first, last, stop, state
