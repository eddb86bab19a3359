"""What an editor sees in a kernel's body: asks rust-analyzer, by its protocol, for types and methods.

    rust_analyzer.py CRATE FILE

FILE is a source file of the crate. In it `// hover NAME: TYPE` asks for the type of NAME on its own
line, and `// complete NAME: METHOD ...` for methods offered after `NAME.` on the next line. Exits
with 1, and says what differs, if anything does or if nothing is asked, and if there is an expression
in the crate whose type rust-analyzer does not know.
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import time


class Server:
    """A language server over its standard input and output."""

    def __init__(self, root: pathlib.Path) -> None:
        self.process = subprocess.Popen(
            ["rust-analyzer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
        )
        self.count = 0
        self.ready = False
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri(),
                "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
                "capabilities": {"experimental": {"serverStatusNotification": True}},
                "initializationOptions": {"checkOnSave": False, "cachePriming": {"enable": False}},
            },
        )
        self.tell("initialized", {})

    def send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method: str, params: dict) -> None:
        self.send({"method": method, "params": params})

    def receive(self) -> dict:
        """The next message; the server's own questions are answered with nothing."""
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            if not line and self.process.poll() is not None:
                sys.exit("rust-analyzer has ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if message.get("method") == "experimental/serverStatus":
            status = message["params"]
            if status["health"] == "error":
                sys.exit(f"rust-analyzer: {status.get('message')}")
            self.ready = status["quiescent"]
        elif "method" in message and "id" in message:
            self.send({"id": message["id"], "result": None})
        return message

    def ask(self, method: str, params: dict) -> object:
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.count and "method" not in message:
                if "error" in message:
                    sys.exit(f"rust-analyzer: {method}: {message['error']['message']}")
                return message["result"]


def unknown_types(root: pathlib.Path) -> list[str]:
    """The expressions of the crate whose types rust-analyzer does not know."""
    done = subprocess.run(
        ["rust-analyzer", "analysis-stats", "--quiet", "--output", "csv", "--skip-mir-stats"]
        + ["--skip-const-eval", "--skip-data-layout", str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    total = re.search(r"exprs: (\d+),", done.stdout + done.stderr)
    if not total or not int(total.group(1)):
        sys.exit("rust-analyzer has read no expressions")
    found = set()
    for row in csv.reader(done.stdout.splitlines()):
        if len(row) != 5 or "{unknown}" not in row[4] or not row[0].startswith(str(root)):
            continue
        file, begin, end = row[:3]
        line, start = map(int, begin.split(":"))
        stop = int(end.split(":")[1])
        text = pathlib.Path(file).read_text().splitlines()[line - 1]
        # It gives the lengths of arrays no type, in any Rust; some lengths in kernels stand where their arrays do.
        # Lines count from 1, columns from 0.
        length = re.search(r";\s*$", text[:start]) and text[stop:].startswith("]")
        array = re.search(r"(:|->|[\[&<(])\s*$", text[:start]) and re.fullmatch(r"\[.*;\s*\w+\]", text[start:stop])
        if not length and not array:
            found.add(f"{file}:{line}: the type of `{text[start:stop]}` is unknown")
    return sorted(found)


def main() -> None:
    root, file = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    text = file.read_text()
    lines = text.splitlines()
    server = Server(root)
    while not server.ready:
        server.receive()
    document = {"uri": file.as_uri()}
    server.tell(
        "textDocument/didOpen",
        {"textDocument": {**document, "languageId": "rust", "version": 1, "text": text}},
    )

    def at(row: int, column: int) -> dict:
        return {"textDocument": document, "position": {"line": row, "character": column}}

    wrong, asked = [], 0
    for row, line in enumerate(lines):
        if found := re.search(r"// hover (\w+): (.+)$", line):
            asked += 1
            name, expected = found.groups()
            column = re.search(rf"\b{name}\b", line).start()
            told = server.ask("textDocument/hover", at(row, column))
            said = told["contents"]["value"] if told else "nothing"
            if f"{name}: {expected}" not in said:
                wrong.append(f"{file}:{row + 1}: {name} is not {expected}, but: {said}")
        if found := re.search(r"// complete (\w+): (.+)$", line):
            asked += 1
            name, expected = found.group(1), found.group(2).split()
            column = lines[row + 1].index(f"{name}.") + len(name) + 1
            told = server.ask("textDocument/completion", at(row + 1, column))
            items = told["items"] if isinstance(told, dict) else told or []
            offered = {re.match(r"\w*", item["label"]).group() for item in items}
            for missing in sorted(set(expected) - offered):
                wrong.append(f"{file}:{row + 2}: {missing} is not offered after {name}.")
    server.process.kill()
    if not asked:
        sys.exit(f"{file} asks nothing")
    wrong += unknown_types(root)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{asked} questions about a kernel's body answered, no type unknown")


if __name__ == "__main__":
    main()
