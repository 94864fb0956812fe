"""Man pages: dtrain(1), of commands and flags, and dtrain-spec(5), of all that a spec may say."""
from help import ROW_INDENT, Row, parts, split_common

NEST = 2  # columns of the help, by which a table stands below a field
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
        self.open, self.indent = None, ROW_INDENT

    def enter(self, what):
        if self.open == what:
            return
        if self.open == "literal":
            self.lines.append(".fi")
        self.nest(ROW_INDENT)
        if what in ("text", "literal") and not self.lines[-1].startswith((".SH", ".SS")):
            self.lines.append(".PP")
        if what == "literal":
            self.lines.append(".nf")
        self.open = what

    def nest(self, indent):
        while self.indent < indent:
            self.lines.append(".RS")
            self.indent += NEST
        while self.indent > indent:
            self.lines.append(".RE")
            self.indent -= NEST

    def section(self, name, level="SH"):
        self.enter(None)
        self.lines.append(f'.{level} "{escaped(name)}"')

    def line(self, what, text):
        self.enter(what)
        self.lines.append(escaped(text))

    def row(self, row):
        self.enter("rows")
        self.nest(row.indent)
        self.lines += [".TP", head(row), escaped(row.text)]

    def help(self, text):
        """What is indented and no row stands as it is."""
        for part in parts(text):
            if isinstance(part, Row):
                self.row(part)
            elif part:
                self.line("literal" if part.startswith(" ") else "text", part)
            else:
                self.enter(None)

    def text(self):
        self.enter(None)
        return "\n".join(self.lines) + "\n"


def is_of_the_spec(dtrain, topic):
    return bool(dtrain.kinds(topic.name)[0]) or topic.name in ("spec", "regularizer")


def commands_page(dtrain, version):
    page = Page("dtrain", 1, version, "trains neural networks over parameter servers")
    page.section("SYNOPSIS")
    for line in dtrain.usage.split("\n"):
        page.line("literal", line[len("usage: "):])
    page.section("DESCRIPTION")
    page.line("text", WHAT_IT_IS)
    for topic in dtrain.topics:
        if not is_of_the_spec(dtrain, topic):
            page.section(topic.name.upper().replace("-", " "))
            page.help(dtrain.text(topic.name))
    return page.text()


def spec_page(dtrain, version):
    page = Page("dtrain-spec", 5, version, "what a run of dtrain trains, and how")
    page.section("DESCRIPTION")
    page.line("text", "A JSON object. dtrain check says what is wrong with one, dtrain schema prints a JSON Schema.")
    for topic in dtrain.topics:
        if not is_of_the_spec(dtrain, topic):
            continue
        kinds, common = dtrain.kinds(topic.name)
        page.section(topic.name.upper())
        page.line("text", topic.text)
        page.help(common if kinds else dtrain.text(topic.name))
        for kind in kinds:
            page.section(kind.name, "SS")
            page.line("text", kind.text)
            page.help(split_common(dtrain.text(*topic.name.split(), kind.name))[0])
    page.section("SEE ALSO")
    page.line("text", "dtrain(1)")
    return page.text()
