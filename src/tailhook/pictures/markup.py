"""HTML and SVG that stand alone: text of a session made harmless, and the page around a picture."""

import html
import re

from tailhook.hook.answer import plain

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
MONO_FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'
LIGHT_COLOURS = {
    "page": "#f6f7f8",
    "card": "#ffffff",
    "ink": "#15191d",
    "faint": "#59626b",
    "line": "#dde1e5",
    "good": "#0c6b45",
    "good-back": "#ddf3e8",
    "bad": "#8a4b00",
    "bad-back": "#fff1d6",
    "grid": "#e6e9ec",
    "agent": "#2f6fb5",
    "thinking": "#8a6fc0",
    "call": "#1f8a84",
    "result": "#c27f22",
    "person": "#b3403a",
    "host": "#515a63",
    "summary": "#a0568e",
    "sidechain": "#6a8f3c",
    "other": "#8b949c",
    "broken": "#15191d",
    "blank": "#dde1e5",
}
DARK_COLOURS = {
    "page": "#101317",
    "card": "#181c21",
    "ink": "#e8ebee",
    "faint": "#9aa5b0",
    "line": "#2b3138",
    "good": "#6ad8a5",
    "good-back": "#123a2a",
    "bad": "#ffc661",
    "bad-back": "#3a2a0c",
    "grid": "#262c33",
    "agent": "#6ba6e8",
    "thinking": "#a894de",
    "call": "#4fb9b2",
    "result": "#dca24f",
    "person": "#e0726b",
    "host": "#a9b3bd",
    "summary": "#cf86bd",
    "sidechain": "#93b866",
    "other": "#717c87",
    "broken": "#e8ebee",
    "blank": "#2b3138",
}
PAGE_STYLE = f"""
* {{ box-sizing: border-box; }}
body {{ background: var(--page); color: var(--ink); font: 15px/1.5 {FONT}; margin: 0 auto; max-width: 1180px;
  padding: 20px 20px 48px; }}
h1 {{ font-size: 22px; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 16px; margin: 28px 0 8px; }}
p {{ margin: 4px 0; overflow-wrap: anywhere; }}
.facts {{ color: var(--faint); }}
.card {{ background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 16px 0;
  padding: 14px 18px; }}
"""


def escape(text: str) -> str:
    r"""Return a line of text for HTML and SVG: no markup, and control and format characters as escapes.

    >>> escape("<b>\x1b[31m\u202e&")
    '&lt;b&gt;\\x1b[31m\\u202e&amp;'
    """
    return html.escape(plain(text))


def colour_style(selector: str) -> str:
    """Return the colours as CSS variables of an element, for light and for dark screens."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colours.items()) for colours in (LIGHT_COLOURS, DARK_COLOURS)
    )
    return f"{selector}{{{light}}}\n@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}\n"


def plain_style(style: str) -> str:
    """Return CSS with colours in place of their variables, for light and for dark screens.

    Many programs that draw SVG do not support variables: they would draw everything black. Programs without media
    queries draw it for a light screen.
    """
    variable = re.compile(r"var\(--([a-z-]+)\)")
    light = variable.sub(lambda found: LIGHT_COLOURS[found[1]], style)
    dark = variable.sub(lambda found: DARK_COLOURS[found[1]], style)
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}\n"


def make_page(title: str, style: str, body: str) -> str:
    """Return an HTML page that loads nothing and runs nothing.

    title: plain text.  style: CSS.  body: HTML.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{colour_style(":root")}:root{{color-scheme:light dark;}}{PAGE_STYLE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def encode_markup(markup: str) -> bytes:
    """Return HTML or SVG in UTF-8."""
    return markup.encode("utf-8", "replace")
