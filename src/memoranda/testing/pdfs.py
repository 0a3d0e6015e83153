"""PDFs of a few lines for tests, written by hand: a library that reads them writes no text."""

from collections.abc import Sequence


def pdf(*pages: Sequence[str] | None, info: str = "") -> bytes:
    """Write a PDF whose pages show these lines in Helvetica; a page of None has a picture's frame and no text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = " ".join(f"({line}) Tj T*" for line in lines) if lines else ""
        stream = f"BT /F1 12 Tf 14 TL 72 700 Td {shown} ET" if lines else "0 0 10 10 re S"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        kids.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>"
    objects.append(f"<< {info} >>")
    out, places = "%PDF-1.4\n", list[int]()
    for number, written in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{written}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return out.encode("latin-1")
