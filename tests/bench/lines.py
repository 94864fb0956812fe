"""lines.py - figures as lines: each function turns one record of the JSON file into its line."""
MIB = 1 << 20
STEP_HEAD = f"{'ms a step':44} step one host not limited transfer examples/s"


def of(record):
    return f"{record['workload']:11} {record['mode']:5} {record.get('transport', ''):4}"


def met(record):
    return "met" if record["is_met"] else "NOT MET"


def throughput(record):
    rates, peer, bare = record["examples_per_second"], record["tensorflow"], record["bare"]
    line = (f"{of(record)} {record['median']:11,.0f} examples/s ({min(rates):,.0f} to "
            f"{max(rates):,.0f}), {record['ratio']:6.2f} x TensorFlow ({peer:,.0f}, "
            f"{record['origin']}), goal {record['goal']} x: {met(record)}")
    if record["at_most"]:
        line += f"; no more than {record['at_most']:,.0f} is asked for by the arithmetic alone"
    if record["at_least"]:
        line += f"; at least {record['at_least']:,.0f} by PyTorch"
    if bare:
        line += f"; {record['median'] / bare:.2f} of a bare server ({bare:,.0f})"
    return line


def start(record):
    seconds = record["seconds"]
    return (f"{of(record)} {record['median']:11.3f} s to the first step ({min(seconds):.3f} to "
            f"{max(seconds):.3f}), TensorFlow {record['tensorflow']:.1f} ({record['origin']}), "
            f"goal {record['goal']}: {met(record)}")


def memory(record):
    mib = {name: record[name] / MIB
           for name in ("peak", "anonymous", "file", "shared", "state", "goal")}
    return (f"{of(record)} {mib['peak']:11.1f} MiB at most in ps/{record['ps']} (now "
            f"{mib['anonymous']:.1f} anonymous, {mib['file']:.1f} file, {mib['shared']:.1f} "
            f"shared), TensorFlow {record['tensorflow_mib']:.0f} ({record['origin']}), goal "
            f"{mib['goal']:.1f}, where values and slots are {mib['state']:.1f}: {met(record)}")


def peers(record):
    return (f"{of(record)} TensorFlow {record['version']}: {record['median']:,.0f} examples/s, "
            f"{record['first_step_s']:.2f} s to the first step, {record['ps_mib']:.0f} MiB in a ps")


def link(record):
    if record["rate"] in (None, "none"):
        return "" if record["rate"] is None else "not limited"
    return f"{record['rate']:>4} Gbit/s"


def goal(held):
    text = f"{held['figure']:.2f} of {held['of']}"
    if held["is_ok"] is None:
        return text
    limit = "at least" if held["at_most"] is None else "at most"
    bound = held["at_least"] if held["at_most"] is None else held["at_most"]
    return f"{text}, {limit} {bound}: {'ok' if held['is_ok'] else 'NOT'}"


def step(record):
    case = (f"{record['program']:1} {record['workload']:7} {record['mode']:5} "
            f"{record['layout']:5} {link(record):11} {record['wire']:11}")
    beside = [f"{1e3 * seconds:.2f}" if seconds else "-" for seconds in
              (record["beside"][name] for name in ("one_host", "free", "transfer"))]
    line = (f"{case} {1e3 * record['step_s']:7.2f} {beside[0]:>8} {beside[1]:>11} {beside[2]:>8} "
            f"{record['examples_per_second']:10,.0f}  {'; '.join(map(goal, record['goals']))}")
    return line.rstrip()
