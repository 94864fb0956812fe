"""What `dtrain help` says, read back: the pages that are installed are made of it, and so of the tables that parse
flags and spec."""
import re
import subprocess

ROW_INDENT = 2


class Row:
    """Of a table: name, type (of fields and flags, else None) and text."""

    def __init__(self, indent, cells, column):
        self.indent, self.name, self.text, self.column = indent, cells[0], cells[-1], column
        self.type = cells[1] if len(cells) == 3 else None
        if self.name.startswith("--"):
            self.name, _, self.type = self.name.partition("=")

    def choices(self):
        found = re.search(r"one of: ([^;)]*)", self.text)
        return found.group(1).split(", ") if found else []


class Help:
    def __init__(self, binary):
        self.binary = binary
        overview = self.text()
        self.usage = overview.split("\n\n")[0]
        self.topics = rows(overview.split("\n\n")[1])
        self.commands = [Row(0, found, 0) for found in
                         re.findall(r"^ {7}dtrain ([a-z]+)(?: (\S.*?))? {2,}(\S.*)$", self.usage, re.MULTILINE)]

    def text(self, *words):
        """Without the first line of a topic, which its row in the list says, too."""
        done = subprocess.run([self.binary, "help", *words], check=True, text=True, capture_output=True)
        return done.stdout.partition("\n\n")[2] if words else done.stdout

    def flags_of(self, topic):
        return [row for row in rows(self.text(topic)) if row.name.startswith("--")]

    def flags(self, command=None):
        """Of a run, or of a command: those of its topic, and a run's where it takes these."""
        if command is None:
            return self.flags_of("flags")
        is_topic = command.name in [topic.name for topic in self.topics]
        own = self.flags_of(command.name) if is_topic else []
        is_run = "(dtrain help flags)" in self.text(command.name).replace("\n", " ") if is_topic else \
            command.type == "[FLAGS] SPEC.json"
        return (self.flags() if is_run else []) + own

    def verbs(self, command):
        """Of a command that has some."""
        found = re.findall(rf"^ +dtrain {command} ([a-z]+)\b", self.text(command), re.MULTILINE)
        return list(dict.fromkeys(found))

    def kinds(self, topic):
        """What `dtrain help TOPIC NAME` explains, and the text on what all of them have."""
        text, more, _ = self.text(*topic.split()).partition("\nMore: dtrain help")
        own, common = split_common(text)
        return (rows(own), common) if more else ([], "")


def split_common(text):
    """A kind's own fields, and those that every kind has."""
    found = re.search(r"^Every .* has also:$", text, re.MULTILINE)
    return (text[:found.start()], text[found.start():]) if found else (text, "")


def parts(text):
    """Rows, and between them lines as they are."""
    row = None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        cells = re.split(r" {2,}", line.strip())
        if row and line and indent == row.column:
            row.text += " " + line.strip()
        elif indent >= ROW_INDENT and 2 <= len(cells) <= 3:
            if row:
                yield row
            row = Row(indent, cells, line.rindex(cells[-1]))
        else:
            if row:
                yield row
            row = None
            yield line
    if row:
        yield row


def rows(text):
    return [part for part in parts(text) if isinstance(part, Row)]
