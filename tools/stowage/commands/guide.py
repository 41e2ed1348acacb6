"""Writes guide.cpp: guide.py OUTPUT INDEX PAGES... makes a C++ file of Markdown pages. The index has one row
for each page, `| [Title](page.md) | the questions that it answers |`."""

import pathlib
import re
import sys

PIECE = 8000  # bytes of a string literal; compilers need not accept more than 65,536


def literal(text):
    """The text as string literals of limited length. Bytes outside of plain ASCII are escaped."""
    data = text.encode()
    out = []
    for at in range(0, len(data), PIECE):
        piece = "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in data[at : at + PIECE]
        )
        out.append(f'    "{piece}"')
    return "\n".join(out)


def main():
    output, index, *pages = sys.argv[1:]
    answers = dict(
        re.findall(
            r"^\| \[[^]]*\]\(([a-z-]+)\.md\) \| (.*) \|$",
            pathlib.Path(index).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    if list(answers) != [pathlib.Path(page).stem for page in pages]:
        sys.exit(f"{index}: its rows are not the pages that are built, in their order")
    rows = []
    for page in map(pathlib.Path, pages):
        text = page.read_text(encoding="utf-8")
        if not text.startswith("# "):
            sys.exit(f"{page}: a page begins with its heading")
        rows.append(f'  {{"{page.stem}",\n{literal(answers[page.stem])},\n{literal(text)}}},')
    body = "\n".join(rows)
    pathlib.Path(output).write_text(
        f"""// Made by guide.py.
#include "commands/guide.h"

#include <array>

namespace command {{

std::span<const GuidePage> guide_pages() {{
  static constexpr std::array<GuidePage, {len(rows)}> pages{{{{
{body}
  }}}};
  return pages;
}}

}}  // namespace command
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
