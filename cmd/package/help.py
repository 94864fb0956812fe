"""Parses `dtrain help --json`, from which the installed pages are made: it comes from the tables that parse flags and
spec."""
import json
import subprocess


class Row:
    """A field of the spec, a flag, or another thing with a name and a text. type: None if it takes no value."""

    def __init__(self, found, is_flag=False):
        self.name = "--" + found["name"] if is_flag else found["name"]
        self.type = None if is_flag and found.get("type") == "boolean" else found.get("type")
        self.text = found.get("text", found.get("summary", ""))
        self.choices = found.get("choices", [])
        self.rows = fields(found)


def fields(found):
    """The fields of a kind, of a topic, or within a field."""
    return [Row(field) for field in found.get("fields", [])]


class Topic(Row):
    def __init__(self, found):
        super().__init__(found)
        # A text as it stands, or rows
        self.parts = [part.get("text") or [Row(flag, True) for flag in part["flags"]] for part in found.get("parts", [])]
        self.kinds = [Row(kind) for kind in found.get("kinds", [])]
        self.has_kinds = "kinds" in found
        self.flags = [row for part in self.parts if not isinstance(part, str) for row in part]


class Command(Row):
    def __init__(self, found):
        super().__init__(found)
        self.type, self.verbs = found["arguments"] or None, found["verbs"]
        self.takes_run_flags = found["takes_run_flags"]


class Help:
    def __init__(self, binary):
        done = subprocess.run([binary, "help", "--json"], check=True, text=True, capture_output=True)
        found = json.loads(done.stdout)
        self.usage = "".join(part["text"] for part in found["usage"])
        self.topics = [Topic(topic) for topic in found["topics"]]
        self.commands = [Command(command) for command in found["commands"]]

    def flags_of(self, name):
        return [flag for topic in self.topics if topic.name == name for flag in topic.flags]

    def flags(self, command=None):
        """Flags of a run, or of a command: those of its topic, and of a run if it takes these, too."""
        if command is None:
            return self.flags_of("flags")
        return (self.flags() if command.takes_run_flags else []) + self.flags_of(command.name)
