#!/usr/bin/env python3
"""Fails where links of the site cannot be read: contrast.py STYLE...

The styles are those of a page, in order, of which the last one that says something of a theme counts. In every theme
links need the 4.5 to 1 of WCAG 2.1 (1.4.3) against what is behind them. That they have one colour, also where they
are visited and under the mouse, is looked for too.
"""

import colorsys
import pathlib
import re
import sys

LEAST = 4.5
#: What may be behind links of the text, and behind the page's own in the list of pages.
BEHIND = {
    "--links": ["--bg", "--quote-bg", "--table-header-bg", "--table-alternate-bg"],
    "--sidebar-active": ["--sidebar-bg"],
}


def parts(colour):
    """Red, green and blue, 0 to 1, of `#rgb`, `#rrggbb` and `hsl(h, s%, l%)`."""
    if found := re.fullmatch(r"hsl\(([\d.]+),\s*([\d.]+)%,\s*([\d.]+)%\)", colour):
        h, s, l = map(float, found.groups())
        return colorsys.hls_to_rgb(h / 360, l / 100, s / 100)
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(d + d for d in digits)
    return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def rules(text):
    """Selectors, with `@media` before those inside of it, and what stands in braces behind them."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for media, inside, selectors, body in re.findall(
        r"(@media[^{]*)\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}|([^{}]+)\{([^{}]*)\}", text
    ):
        if media:
            for selector, declared in rules(inside):
                yield f"{media.strip()} {selector}", declared
        for selector in filter(None, (s.strip() for s in selectors.split(","))):
            yield selector, dict(re.findall(r"([\w-]+)\s*:\s*([^;]+?)\s*;", body))


def main(files):
    themes, wrong = {}, []
    for file in files:
        for selector, declared in rules(pathlib.Path(file).read_text(encoding="utf-8")):
            themes.setdefault(selector, {}).update({k: v for k, v in declared.items() if k.startswith("--")})
            if re.fullmatch(r"a(:\w+)?(:\w+)?", selector) and declared.get("color", "var(--links)") != "var(--links)":
                wrong.append(f"{file}: `{selector}` has a colour of its own: {declared['color']}")
    themes = {name: theme for name, theme in themes.items() if "--bg" in theme}
    for name, theme in themes.items():
        for links, behind in BEHIND.items():
            for ground in behind:
                found = contrast(theme[links], theme[ground])
                if found < LEAST:
                    wrong.append(f"{name}: {links} {theme[links]} on {ground} {theme[ground]}: {found:.2f} to 1")
    if not themes:
        wrong.append("no theme is there")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"links can be read in {len(themes)} themes")


if __name__ == "__main__":
    main(sys.argv[1:])
