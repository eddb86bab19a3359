#!/usr/bin/env python3
"""Writes docs/gallery.md and the pictures beside it, by running the examples.

Run it with the package installed; ``--check`` needs no package and only says whether the page shows the
examples as they are and the figures as docs/performance.md has them.
"""

import ast
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PICTURES = DOCS / "gallery"

#: Each example: its title, the file, the function of a Python file, the picture, what to say, and the rows of
#: docs/performance.md about it.
EXAMPLES = [
    ("Mandelbrot", "mandelbrot.inv", None, "gallery/mandelbrot.png",
     "How many steps each point takes to leave the circle. `strict` rounds every product and sum by itself, so that "
     "every computer draws the same picture, bit by bit.",
     ["Mandelbrot 2048², against scalar C", "Mandelbrot 2048², against vectors by hand"]),
    ("Sobel filter", "sobel.inv", None, "gallery/sobel.png",
     "The edges of the picture above. Neighbours beyond the border are the border's own points, chosen without a branch.",
     []),
    ("Dots", "imageblock.inv", None, "gallery/dots.png",
     "The first picture as a printer of dots would make it. A threadgroup keeps its square of the picture in an "
     "[imageblock](textures.md#imageblocks), adds it up there and draws there.", []),
    ("Heat in a rod", "python/heat.py", "heat", "gallery/heat.png",
     "A rod with three hot places, time running down. A threadgroup makes eight steps in tiles that take turns; the "
     "halo around them is as wide as the steps that it makes.", []),
    ("Softmax", "softmax.inv", None, "gallery/softmax.png",
     "Rows of scores become weights: the map of an attention that looks at its neighbours and, a little, at every "
     "sixteenth place. A threadgroup has a row, and reduces it in threadgroup memory.", ["softmax 4096x4096"]),
    ("Histogram", "byte_histogram.inv", None, "gallery/histogram.svg",
     "How often each byte occurs in the memory model's page: atomics on threadgroup memory first, then one for each "
     "byte on device memory.", ["histogram of 64 MiB"]),
    ("Means of neighbours", "smooth.inv", None, "gallery/smooth.svg",
     "The kernel of the first page, corrected: 128 floats before and after.", []),
]


def kernel(file, function):
    text = (ROOT / "examples" / file).read_text(encoding="utf-8")
    if function is None:
        # Without what comes behind the last kernel: how to run it.
        return "inv", text[: text.rindex("\n}") + 2].strip()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            lines = text.splitlines()[node.decorator_list[0].lineno - 1 : node.end_lineno]
            return "python", "\n".join(lines)
    sys.exit(f"{file} has no function {function}")


def figures(rows):
    performance = (DOCS / "performance.md").read_text(encoding="utf-8").splitlines()
    out = []
    for name in rows:
        found = [line for line in performance if line.startswith(f"| {name} |")]
        if not found:
            sys.exit(f"docs/performance.md has no row `{name}`")
        ours, peer, ratio = [cell.strip() for cell in found[0].strip("|").split("|")][1:4]
        out.append(f"- {name}: {ours}, the peer {peer}: {ratio} times as fast")
    return "\n".join(out)


def page():
    parts = [
        "# Gallery\n",
        "<!-- Written by scripts/gallery.py from examples/ and performance.md: do not edit. -->\n",
        "What the kernels of `examples/` make. `invar demo` runs six of them on your machine. The figures are those of "
        "[the page on performance](performance.md), which says how they were measured.\n",
    ]
    for title, file, function, picture, words, rows in EXAMPLES:
        language, text = kernel(file, function)
        parts.append(f"## {title}\n\n![{title}]({picture})\n\n{words}\n")
        if rows:
            parts.append(f"{figures(rows)}\n")
        parts.append(f"`examples/{file}`:\n\n```{language}\n{text}\n```\n")
    parts.append("## Layouts\n\n![A swizzled layout](layouts/swizzle.svg)\n\n"
                 "`invar layout` draws where the elements of a layout lie; [layouts](layouts.md) has more of them.\n")
    return "\n".join(parts)


def run(file, grid, outs, threadgroup=None, **args):
    """Runs a kernel of examples/ by the command; gives the arrays."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "invar", "run", str(ROOT / "examples" / file), "--grid", grid]
        if threadgroup:
            command += ["--threadgroup", threadgroup]
        for name, value in args.items():
            if isinstance(value, np.ndarray):
                np.save(f"{folder}/{name}.npy", value)
                value = f"@{folder}/{name}.npy"
            command += ["--arg", f"{name}={value}"]
        for name in outs:
            command += ["--out", f"{name}=@{folder}/{name}.out.npy"]
        subprocess.run(command, check=True)
        return [np.load(f"{folder}/{name}.out.npy") for name in outs]


def png(name, levels, colours):
    """Writes a picture of bytes by a table of 256 colours."""
    height, width = levels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in levels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b"\x89PNG\r\n\x1a\n"
    data += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
    data += chunk(b"PLTE", colours.tobytes()) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    (PICTURES / name).write_bytes(data)


def svg(name, width, height, shapes):
    style = (
        "<style>.a { stroke: #c9743a } .b { stroke: #2f7ed8 } path { fill: none; stroke-width: 2 } "
        "rect { fill: #2f7ed8 } text { fill: #333; font: 13px sans-serif } .ground { fill: #fff } "
        "@media (prefers-color-scheme: dark) { text { fill: #ccc } .ground { fill: #0d1117 } }</style>"
    )
    (PICTURES / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'{style}\n<rect class="ground" width="{width}" height="{height}"/>\n' + "\n".join(shapes) + "\n</svg>\n",
        encoding="utf-8",
    )


def draw():
    import numpy as np

    ramp = np.linspace(0, 1, 256)
    # From dark blue through orange to white.
    hot = np.stack([np.clip(a, 0, 1) for a in (2.2 * ramp, 1.6 * ramp**1.6, 0.25 + ramp - 1.2 * ramp * (1 - ramp))], 1)
    hot = (255 * np.clip(hot, 0, 1)).astype(np.uint8)
    size, limit = 480, 200
    (steps,) = run("mandelbrot.inv", f"{size},{size}", ["steps"], "64,4", steps=f"zeros({size * size})", size=size, left=-2.0,
                   top=-1.25, scale=2.5 / size, limit=limit)
    steps = steps.reshape(size, size)
    shade = np.where(steps >= limit, 0, 255 * (steps / limit) ** 0.35).astype(np.uint8)
    mandelbrot = shade
    png("mandelbrot.png", mandelbrot, hot)
    (edges,) = run("sobel.inv", f"{size},{size}", ["edges"], "128,2", picture=shade.reshape(-1), edges=f"zeros({size * size})", width=size,
                   height=size)
    edges = 255 - edges.reshape(size, size)
    png("sobel.png", edges, np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1))

    subprocess.run([sys.executable, "-m", "invar", "run", str(ROOT / "examples" / "imageblock.inv"),
                    "--arg", f"src=@{PICTURES}/mandelbrot.png", "--arg", f"dst=texture(rgba8unorm, {size}, {size})",
                    "--out", f"dst=@{PICTURES}/dots.png"], check=True)

    sys.path.insert(0, str(ROOT / "examples" / "python"))
    import heat

    n, times = 480, 200
    rod, after = np.zeros(n, np.float32), np.zeros(n, np.float32)
    rod[[60, 230, 390]] = [60, 100, 80]
    rod[300:340] = 6
    rows = [rod.copy()]
    groups = -(-n // (heat.THREADS - 2 * heat.STEPS))
    for _ in range(times):
        heat.heat[groups * heat.THREADS, heat.THREADS](rod, after, n, 0.2)
        rod, after = after, rod
        rows.append(rod.copy())
    shade = 255 * np.minimum(np.sqrt(np.array(rows) / 8), 1)
    png("heat.png", shade.astype(np.uint8), hot)

    n = 256
    i, j = np.mgrid[0:n, 0:n].astype(np.float32)
    scores = 4 * np.exp(-(((i - j) / 6) ** 2)) + 1.5 * ((j % 16) == 0) + 0.3 * np.sin(i / 9) * np.cos(j / 5)
    (weights,) = run("softmax.inv", str(n * 256), ["y"], x=scores.astype(np.float32).reshape(-1), y=f"zeros({n * n})", n=n)
    shade = 255 * np.clip(weights.reshape(n, n) / weights.max(), 0, 1) ** 0.5
    maps = np.kron(shade.astype(np.uint8), np.ones((2, 2), np.uint8))
    png("softmax.png", maps, hot)
    # The README's: three of them in a row.
    gap = np.full((320, 10), 255, np.uint8)
    third = np.arange(320) * 480 // 320
    row = [mandelbrot[third][:, third], gap, edges[third][:, third], gap, maps[:320, :320]]
    png("row.png", np.concatenate(row, 1), hot)

    text = np.frombuffer((DOCS / "memory-model.md").read_bytes(), np.uint8)
    (counts,) = run("byte_histogram.inv", "4096", ["counts"], bytes=text, counts="zeros(256)")
    assert counts.sum() == len(text)
    # The letters, by how often they occur.
    letters = sorted(((int(counts[b]), chr(b)) for b in range(97, 123)), reverse=True)
    most = letters[0][0]
    bars = []
    for k, (count, letter) in enumerate(letters):
        tall = 170 * count / most
        bars.append(f'<rect x="{10 + 24 * k}" y="{185 - tall:.1f}" width="18" height="{tall:.1f}"/>')
        bars.append(f'<text x="{19 + 24 * k}" y="202" text-anchor="middle">{letter}</text>')
    svg("histogram.svg", 640, 210, bars)

    rng = np.random.default_rng(3)
    before = (np.sin(np.arange(128) / 12) + 0.45 * rng.standard_normal(128)).astype(np.float32)
    (after,) = run("smooth.inv", "128", ["y"], x=before, y="zeros(128)")

    def line(values, kind):
        points = " L".join(f"{8 + 4.9 * k:.1f},{105 - 45 * v:.1f}" for k, v in enumerate(values))
        return f'<path class="{kind}" d="M{points}"/>'

    svg("smooth.svg", 640, 210, [
        line(before, "a"), line(after, "b"),
        '<path class="a" d="M440,18 h24"/><text x="470" y="22">before</text>',
        '<path class="b" d="M530,18 h24"/><text x="560" y="22">after</text>',
    ])


def main():
    if sys.argv[1:] == ["--check"]:
        if (DOCS / "gallery.md").read_text(encoding="utf-8") != page():
            sys.exit("docs/gallery.md is stale: run scripts/gallery.py")
        for missing in re.findall(r"\]\(([^):]+\.(?:png|svg))\)", page()):
            if not (DOCS / missing).is_file():
                sys.exit(f"docs/{missing} is missing: run scripts/gallery.py")
        return
    if sys.argv[1:]:
        sys.exit("usage: scripts/gallery.py [--check]")
    PICTURES.mkdir(exist_ok=True)
    draw()
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
