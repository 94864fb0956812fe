"""Man pages: dtrain(1), of commands and flags, and dtrain-spec(5), of all keys of a spec."""
WHAT_IT_IS = ("The same binary is started on every machine: ps tasks hold the variables, worker tasks compute "
              "gradients, worker 0 is the chief. Flags say which task a process is; a JSON file, the spec, says what "
              "to train, see dtrain-spec(5).")


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def head(row):
    between = "=" if row.name.startswith("--") else " "
    kind = f"{between}\\fI{escaped(row.type)}\\fR" if row.type else ""
    return f"\\fB{escaped(row.name)}\\fR{kind}"


class Page:
    """Lines of a page; what stands open is a paragraph of text, one as it stands, or rows."""

    def __init__(self, title, section, version, summary):
        self.lines = [f'.TH {title.upper()} {section} "" "{version}"', ".SH NAME",
                      f"{escaped(title)} \\- {escaped(summary)}"]
        self.open = None

    def enter(self, what):
        if self.open == what:
            return
        if self.open == "literal":
            self.lines.append(".fi")
        if what in ("text", "literal") and not self.lines[-1].startswith((".SH", ".SS")):
            self.lines.append(".PP")
        if what == "literal":
            self.lines.append(".nf")
        self.open = what

    def section(self, name, level="SH"):
        self.enter(None)
        self.lines.append(f'.{level} "{escaped(name)}"')

    def line(self, what, text):
        self.enter(what)
        self.lines.append(escaped(text))

    def rows(self, rows):
        """And the rows of a row, set in below it."""
        for row in rows:
            self.enter("rows")
            self.lines += [".TP", head(row), escaped(row.text)]
            if row.rows:
                self.lines.append(".RS")
                self.rows(row.rows)
                self.lines.append(".RE")

    def text_of_help(self, text):
        """Paragraphs; of these what is indented stands as it is."""
        for paragraph in text.strip("\n").split("\n\n"):
            self.enter(None)
            is_literal = any(line.startswith(" ") for line in paragraph.split("\n"))
            for line in paragraph.split("\n"):
                self.line("literal" if is_literal else "text", line)
        self.enter(None)

    def topic(self, topic):
        for part in topic.parts:
            if isinstance(part, str):
                self.text_of_help(part)
            else:
                self.rows(part)

    def text(self):
        self.enter(None)
        return "\n".join(self.lines) + "\n"


def is_of_the_spec(topic):
    return topic.has_kinds or bool(topic.rows)


def commands_page(dtrain, version):
    page = Page("dtrain", 1, version, "trains neural networks over parameter servers")
    page.section("SYNOPSIS")
    for line in dtrain.usage.rstrip("\n").split("\n"):
        page.line("literal", line[len("usage: "):])
    page.section("DESCRIPTION")
    page.line("text", WHAT_IT_IS)
    for topic in dtrain.topics:
        if not is_of_the_spec(topic):
            page.section(topic.name.upper().replace("-", " "))
            page.topic(topic)
    return page.text()


def spec_page(dtrain, version):
    page = Page("dtrain-spec", 5, version, "what a run of dtrain trains, and how")
    page.section("DESCRIPTION")
    page.line("text", "A JSON object. dtrain check says what is wrong with one, dtrain schema prints a JSON Schema.")
    for topic in dtrain.topics:
        if not is_of_the_spec(topic):
            continue
        page.section(topic.name.upper())
        page.line("text", topic.text)
        if topic.has_kinds and topic.rows:
            page.line("text", f"Every {topic.name} has:")
        page.rows(topic.rows)
        for kind in topic.kinds:
            page.section(kind.name, "SS")
            page.line("text", kind.text)
            page.rows(kind.rows)
    page.section("SEE ALSO")
    page.line("text", "dtrain(1)")
    return page.text()
