"""Kernels, reports and proofs as notebooks show them.

Absent: pictures of layouts, which the extension draws.
"""

from __future__ import annotations

import html
import re

_PRE = '<pre style="margin:0.3em 0;line-height:1.35;overflow-x:auto;font-family:monospace">'
_COLOURS = {"error": "#c62828", "warning": "#b26a00"}
#: The begin of each finding in a rendered report.
_HEAD = re.compile(r"^(error|warning)\[[a-z-]+\]", re.MULTILINE)


def _bold(text, colour=None):
    style = f' style="color:{colour}"' if colour else ""
    return f"<b{style}>{html.escape(text)}</b>"


def _findings(text):
    """Rendered findings, the head of each in its colour."""
    coloured = _HEAD.sub(lambda head: _bold(head[0], _COLOURS[head[1]]), html.escape(text))
    return f"{_PRE}{coloured}</pre>"


def kernel(kernel, error):
    """A kernel: its parameters, and its text form folded away, or the error of that class."""
    parts = [f"<div>kernel {_bold(kernel.__name__)}<ul style='margin:0.2em 0'>"]
    try:
        parts += [f"<li><code>{html.escape(str(p))}</code></li>" for p in kernel.params]
        parts.append("</ul>")
        if any(p.kind == "value" for p in kernel.params):
            parts.append("compiled for each value of its compile-time parameters")
        else:
            text = html.escape(kernel.ir.rstrip())
            parts.append(f"<details><summary>text form</summary>{_PRE}{text}</pre></details>")
    except error as e:
        parts.append(f"{_PRE}{_bold('error', _COLOURS['error'])}: {html.escape(str(e))}</pre>")
    return "".join(parts) + "</div>"


def report(report):
    """A report: the verdict, each finding with its source lines, and how far the verdict reaches."""
    word = "passed" if report.allowed else "clean"
    verdict = _bold(word, "#2e7d32") if report.passed else _bold("failed", _COLOURS["error"])
    count, allowed = len(report.findings), sum(report.allowed.values())
    parts = [f"<div>{verdict}: {count or 'no'} finding{'s' if count != 1 else ''}"]
    if allowed:
        parts.append(f" beside {allowed} allowed ({html.escape(', '.join(report.allowed))})")
    if report.text:
        parts.append(_findings(report.text))
    if report.reach:
        parts.append(f"<div><i>{html.escape(report.reach)}</i></div>")
    return "".join(parts) + "</div>"


def proof(proof):
    """A proof: the verdict, the conditions, and of a launch that breaks the kernel what is found."""
    colours = {"proved": "#2e7d32", "broken": _COLOURS["error"], "open": _COLOURS["warning"]}
    _, _, rest = proof.words.partition(" ")
    parts = [f"<div>{_bold(proof.verdict, colours[proof.verdict])} {html.escape(rest)}"]
    if proof.conditions:
        parts.append("<ul style='margin:0.2em 0'>")
        parts += [f"<li><code>{html.escape(c)}</code></li>" for c in proof.conditions]
        parts.append("</ul>")
    if proof.launch:
        parts.append(f"{_PRE}{html.escape(proof.command or proof.launch)}</pre>")
    if proof.text:
        parts.append(_findings(proof.text))
    return "".join(parts) + "</div>"
